"""Histogram of the errors of left-out points, against the stated interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from profiles.plots.size_labels import percent_words
from profiles.plots.style import BLUE, INK, ORANGE, Drawn, panels
from profiles.plots.table_words import file_stem, measured_on, table_title
from profiles.prediction.curve_table import Z80
from profiles.prediction.profile import TableOrigin
from profiles.prediction.residuals import Residuals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_BINS, MOST_BINS = 15, 60
FARTHEST_QUANTILE = 0.98
LEAST_RANGE, LARGEST_RANGE = 0.05, 1.0


def draw_residual_histogram(origin: TableOrigin, left_out: dict[str, Residuals]) -> Drawn | None:
    """A panel for each kind of residual (its words -> residuals); None where there are none."""
    kinds = {words: each for words, each in left_out.items() if len(each.row)}
    if not kinds:
        return None
    title = f"{table_title(origin)}: error of left-out measurements"
    figure, axes = panels(title, 1, len(kinds), (4.6, 3.2), share=True)
    reach = _reach(list(kinds.values()))
    for panel, (words, residuals) in zip(axes, kinds.items(), strict=True):
        _draw(panel, residuals, reach)
        panel.set_title(words, loc="left")
        panel.set_xlabel("predicted over measured time, minus 1 (%)")
    axes[0].set_ylabel("measured points (%)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    caption = (
        f"How far predictions of left-out measurements of {table_title(origin)} {measured_on(origin)} are off, with the"
        " typical stated 80 % interval: "
        + "; ".join(f"{words.lower()}, {_summary(residuals)}" for words, residuals in kinds.items())
        + "."
    )
    return Drawn(file_stem(origin.operator, origin.dtype, origin.variant, "residuals"), title, caption, figure)


def _reach(kinds: list[Residuals]) -> float:
    """Log error up to which bars are drawn."""
    farthest = max(float(np.quantile(np.abs(each.log_error), FARTHEST_QUANTILE)) for each in kinds)
    stated = max(Z80 * float(np.median(each.sigma)) for each in kinds)
    return float(np.clip(1.15 * max(farthest, stated), LEAST_RANGE, LARGEST_RANGE))


def _draw(panel: Axes, residuals: Residuals, reach: float) -> None:
    error = residuals.log_error
    bins = int(np.clip(2.0 * np.sqrt(len(error)), FEWEST_BINS, MOST_BINS))
    edges = 100.0 * np.expm1(np.linspace(-reach, reach, bins + 1))
    weights = np.full(len(error), 100.0 / len(error))
    percent = 100.0 * np.expm1(error)
    panel.hist(percent, bins=edges.tolist(), weights=weights, color=BLUE, edgecolor="white", linewidth=0.3)
    typical = Z80 * float(np.median(residuals.sigma))
    low, high = 100.0 * np.expm1(-typical), 100.0 * np.expm1(typical)
    panel.axvspan(low, high, color=ORANGE, alpha=0.15, linewidth=0, zorder=0)
    for place, edge in enumerate((low, high)):
        label = "typical stated 80 % interval" if not place else None
        panel.axvline(edge, color=ORANGE, linestyle="--", linewidth=1.2, label=label)
    panel.axvline(0.0, color=INK, linewidth=0.8)
    panel.set_xlim(edges[0], edges[-1])
    beyond = int((np.abs(error) > reach).sum())
    summary = residuals.summary()
    if summary is None:
        return
    lines = [
        f"{summary.num_points:,} points",
        f"median {percent_words(summary.median)}",
        f"90 % below {percent_words(summary.p90)}",
        f"{percent_words(summary.coverage, 0)} in own interval",
    ]
    lines += [f"{beyond:,} not shown" if beyond > 1 else "1 not shown"] if beyond else []
    box: dict[str, Any] = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 2.0}
    panel.text(
        0.985,
        0.97,
        "\n".join(lines),
        transform=panel.transAxes,
        ha="right",
        va="top",
        fontsize=8.5,
        linespacing=1.35,
        bbox=box,
    )


def _summary(residuals: Residuals) -> str:
    summary = residuals.summary()
    if summary is None:
        return "no point"
    return (
        f"median {percent_words(summary.median)}, 90th percentile {percent_words(summary.p90)},"
        f" {percent_words(summary.coverage, 0)} of {summary.num_points:,} points inside their own interval"
    )
