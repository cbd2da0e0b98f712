"""Predictions over measurements on logarithmic axes: a panel a group, with bands of 10 and 25 %."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.evidence.accuracy.plots.shown import (
    OTHERS,
    column,
    framed,
    grid,
    having,
    held_out,
    judged,
    panel_title,
    panels_of,
    thinned,
)
from profiles.plots.size_labels import percent_words, time_words
from profiles.plots.style import BLUE, GREY, INK, ORANGE, Drawn, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEAR, FAR = 1.10, 1.25
FEWEST_TICKS, MOST_TICKS = 3, 5
Row = Mapping[str, Any]
Words = Callable[[float], str]


def draw_step_times(data: Mapping[str, Any]) -> Drawn | None:
    """Step times without calibration; grey: rows that chose constants."""
    rows = having(data["rows"], "measured_step_time_s")
    said = "Predicted against measured step time"
    return _draw("step-time", said, rows, "measured_step_time_s", "predicted_step_time_s", time_words)


def draw_calibrated(data: Mapping[str, Any]) -> Drawn | None:
    """Step times after both stages of the calibration, of rows that it has not seen."""
    if "calibration" not in data:
        return None
    rows = held_out(having(data["rows"], "measured_step_time_s"))
    said = "Predicted against measured step time, calibrated"
    return _draw("step-time-calibrated", said, rows, "measured_step_time_s", "calibrated_step_time_s", time_words)


def draw_memory(data: Mapping[str, Any]) -> Drawn | None:
    """Memory as each source means it."""
    rows = having(data["rows"], "measured_peak_memory_bytes")
    said = "Predicted against measured memory (GiB)"
    return _draw("memory", said, rows, "measured_peak_memory_bytes", "predicted_peak_memory_bytes", _gibibytes)


def _gibibytes(value: float) -> str:
    return f"{value / 2**30:.3g}"


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers between two ends of a logarithmic axis."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        found = [step * 10.0**decade for decade in decades for step in steps]
        found = [each for each in found if low <= each <= high]
        if len(found) >= FEWEST_TICKS:
            break
    return found[:: -(-len(found) // MOST_TICKS)] if found else []


def _draw(name: str, title: str, rows: Sequence[Row], x: str, y: str, words: Words) -> Drawn | None:
    known = judged(rows)
    shown = panels_of(known)
    if not shown:
        return None
    height, width = grid(len(shown))
    figure, axes = panels(title, height, width, (3.2, 3.2))
    for panel, (group, own) in zip(axes, shown.items(), strict=False):
        fitted = [row for row in rows if row["fitted"] and (row["group"] if row["group"] in shown else OTHERS) == group]
        _draw_panel(panel, own, fitted, x, y, words)
        panel.set_title(panel_title(group, own), loc="left")
    framed(figure, axes, len(shown), "measured", "predicted", 2.2)
    return Drawn(name, title, _caption(title, known, x, y, fitted=len(known) < len(rows)), figure)


def _draw_panel(panel: Axes, own: Sequence[Row], fitted: Sequence[Row], x: str, y: str, words: Words) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    values = np.concatenate([column(part, name) for part in (own, fitted) if part for name in (x, y)])
    low, high = float(values.min()) / 1.3, float(values.max()) * 1.3
    ends = np.array([low, high])
    panel.fill_between(ends, ends / FAR, ends * FAR, color=BLUE, alpha=0.10, linewidth=0, label="within 25 %")
    panel.fill_between(ends, ends / NEAR, ends * NEAR, color=BLUE, alpha=0.20, linewidth=0, label="within 10 %")
    panel.plot(ends, ends, color=INK, linewidth=0.9, label="equal")
    marks: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.6, "markersize": 2.8}
    for rows, colour, marker, label in ((fitted, GREY, "x", "chose constants"), (own, ORANGE, "o", "judged")):
        if rows or label == "judged":
            at, predicted = column(rows, x), column(rows, y)
            kept = thinned(at, predicted, low, high)
            panel.plot(at[kept], predicted[kept], marker=marker, markeredgecolor=colour, label=label, **marks)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(low, high)
    panel.set_ylim(low, high)
    panel.set_aspect("equal")
    unit = 2.0**30 if words is _gibibytes else 1.0
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_locator(FixedLocator([unit * tick for tick in _ticks(low / unit, high / unit)]))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))


def _caption(title: str, rows: Sequence[Row], x: str, y: str, *, fitted: bool) -> str:
    error = np.abs(column(rows, y) / column(rows, x) - 1.0)
    near, far = (float((error <= band - 1.0).mean()) for band in (NEAR, FAR))
    grey = " Crosses: rows of which constants were chosen." if fitted else ""
    return (
        f"{title} of {len(rows):,} runs, a panel a group with its own scale: "
        f"{percent_words(near, 0)} lie within 10 %, {percent_words(far, 0)}"
        f" within 25 % of the measurement.{grey}"
    )
