"""Plot of the error distribution: part of the rows below each error, beside the constant-utilization guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.evidence.accuracy.plots.shown import column, framed, grid, having, held_out, panel_title, panels_of
from profiles.plots.size_labels import percent_words
from profiles.plots.style import BLUE, GREEN, GREY, ORANGE, Drawn, panels
from solver.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
SMALLEST, LARGEST = 0.005, 2.0
STEPS = 120
TICKS = (0.01, 0.03, 0.1, 0.3, 1.0)


def draw_errors(data: Mapping[str, Any]) -> Drawn | None:
    """A panel a group; the rows are those that neither chose a constant nor calibrated."""
    rows = held_out(having(data["rows"], "measured_step_time_s"))
    shown = panels_of(rows)
    if not shown:
        return None
    title = "How many runs are predicted how well"
    height, width = grid(len(shown))
    figure, axes = panels(title, height, width, (3.5, 2.5), share=True)
    for panel, (group, own) in zip(axes, shown.items(), strict=False):
        _draw_panel(panel, own, calibrated="calibration" in data)
        panel.set_title(panel_title(group, own), loc="left")
    for place, panel in enumerate(axes[: len(shown)]):
        panel.tick_params(labelbottom=place + width >= len(shown))
    framed(figure, axes, len(shown), "error of the step time", "rows below the error (%)", 3.2)
    return Drawn("errors", title, _caption(rows, calibrated="calibration" in data), figure)


def _lines(rows: Sequence[Row], *, calibrated: bool) -> list[tuple[str, str, Any, str]]:
    """Label, colour, line and field of each line."""
    lines: list[tuple[str, str, Any, str]] = [("predicted", ORANGE, "-", "predicted_step_time_s")]
    if calibrated:
        lines.append(("factors", BLUE, "--", "factors_step_time_s"))
        lines.append(("and residual model", GREEN, "-.", "calibrated_step_time_s"))
    lines.append(("constant MFU of the device", GREY, ":", "baseline_step_time_s"))
    return lines


def _draw_panel(panel: Axes, rows: Sequence[Row], *, calibrated: bool) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    at = np.geomspace(SMALLEST, LARGEST, STEPS)
    for label, colour, line, field in _lines(rows, calibrated=calibrated):
        errors = _errors(rows, field)
        below = 100.0 * np.searchsorted(errors, at, side="right") / max(len(errors), 1)
        panel.plot(at, below, color=colour, linestyle=line, linewidth=1.5, label=label)
    panel.set_xscale("log")
    panel.set_xlim(SMALLEST, LARGEST)
    panel.set_ylim(0, 101)
    panel.xaxis.set_major_locator(FixedLocator(list(TICKS)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))


def _errors(rows: Sequence[Row], field: str) -> Array:
    known = having(rows, field)
    errors: Array = np.sort(np.abs(column(known, field) / column(known, "measured_step_time_s") - 1.0))
    return errors


def _caption(rows: Sequence[Row], *, calibrated: bool) -> str:
    medians = ", ".join(
        f"{label} {percent_words(np.median(found), 0)}"
        for label, _, _, field in _lines(rows, calibrated=calibrated)
        if len(found := _errors(rows, field))
    )
    return f"Part of {len(rows):,} runs whose step-time error lies below each value; median error of all: {medians}."
