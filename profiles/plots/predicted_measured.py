"""Figures of predictions against measurements, from short to long times, and their ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from profiles.arrays import Array
from profiles.plots.size_labels import set_ratios, set_times
from profiles.plots.style import BLUE, INK, ORANGE, Drawn, panels
from profiles.plots.table_words import file_stem, measured_on, table_title
from profiles.prediction.curve_table import Z80
from profiles.prediction.profile import TableOrigin
from profiles.prediction.residuals import Residuals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_MARKERS = 2000
"""With more points single markers would cover each other: their density is drawn instead."""
POINTS_A_BIN = 25
MOST_BINS = 14
RATIO_QUANTILE = 0.99
LEAST_RATIO, LARGEST_RATIO = 1.1, 3.0


def draw_predicted_measured(origin: TableOrigin, residuals: Residuals, without: str) -> Drawn | None:
    """Two panels; ``without`` says what was left out ("its site").  None without residuals."""
    if not len(residuals.row):
        return None
    title = f"{table_title(origin)}: predicted without {without}, against measured"
    figure, (left, right) = panels(title, 1, 2, (4.6, 3.9))
    measured, predicted = residuals.measured_s, residuals.predicted_s
    ratio = predicted / measured
    # "higher": of a few points none is left out.
    farthest = np.quantile(np.abs(residuals.log_error), RATIO_QUANTILE, method="higher")
    stated = Z80 * np.median(residuals.sigma)
    reach = float(np.clip(np.exp(1.05 * max(farthest, stated)), LEAST_RATIO, LARGEST_RATIO))
    _draw_cloud(left, measured, predicted)
    both = np.array([min(measured.min(), predicted.min()), max(measured.max(), predicted.max())])
    left.plot(both, both, color=INK, linewidth=0.9, label="equal")
    set_times(left, "x")
    set_times(left, "y")
    left.set_aspect("equal")
    left.set_xlabel("measured time")
    left.set_ylabel("predicted time")
    shown = (ratio < reach) & (ratio > 1.0 / reach)
    _draw_cloud(right, measured[shown], ratio[shown])
    _draw_bands(right, residuals)
    right.axhline(1.0, color=INK, linewidth=0.9, label="equal")
    set_times(right, "x")
    set_ratios(right, reach)
    right.set_xlabel("measured time")
    right.set_ylabel("predicted over measured time")
    beyond = int((~shown).sum())
    if beyond:
        right.set_title(f"{beyond:,} beyond {1 / reach:.2f} to {reach:.2f} not shown", loc="right", fontweight="normal")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), handlelength=3.0)
    caption = (
        f"Time of {table_title(origin)} {measured_on(origin)}, predicted without {without}, against its measurement on"
        f" {len(residuals.row):,} points; right their ratio, with the part that holds the middle 80 % of it and the"
        " stated 80 % interval."
    )
    return Drawn(file_stem(origin.operator, origin.dtype, origin.variant, "predicted"), title, caption, figure)


def _draw_cloud(panel: Axes, x: Array, y: Array) -> None:
    """Single markers of few points, the density of many."""
    if len(x) <= MOST_MARKERS:
        panel.plot(x, y, linestyle="none", marker="o", markersize=3, markerfacecolor="none", markeredgecolor=BLUE)
        return
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter

    cells: dict[str, Any] = {"gridsize": 55, "norm": LogNorm(), "cmap": "Blues", "mincnt": 1, "linewidths": 0.1}
    drawn = panel.hexbin(x, y, xscale="log", yscale="log", **cells)
    bar = panel.figure.colorbar(drawn, ax=panel, label="points in a cell", shrink=0.8, pad=0.02, aspect=28)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))


def _draw_bands(panel: Axes, residuals: Residuals) -> None:
    """Middle 80 % of the ratio and the median stated interval, in bins of equally many points."""
    order = np.argsort(residuals.measured_s, kind="stable")
    bins = int(np.clip(len(order) // POINTS_A_BIN, 1, MOST_BINS))
    parts = np.array_split(order, bins)
    x = np.array([np.exp(np.log(residuals.measured_s[part]).mean()) for part in parts])
    held = np.array([np.quantile(residuals.log_error[part], (0.1, 0.9)) for part in parts])
    stated = Z80 * np.array([np.median(residuals.sigma[part]) for part in parts])
    if bins == 1:
        ends = [residuals.measured_s.min(), residuals.measured_s.max()]
        x, held, stated = np.array(ends), np.repeat(held, 2, axis=0), np.repeat(stated, 2)
    marks: dict[str, Any] = {"markersize": 3.5, "linewidth": 1.4}
    for place, edge in enumerate((held[:, 0], held[:, 1])):
        label = "middle 80 % of the ratio" if not place else None
        panel.plot(x, np.exp(edge), color=ORANGE, marker="s", linestyle="-", label=label, **marks)
    for place, sign in enumerate((-1.0, 1.0)):
        label = "stated 80 % interval" if not place else None
        panel.plot(x, np.exp(sign * stated), color=INK, marker="^", linestyle="--", label=label, **marks)
