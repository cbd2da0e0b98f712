"""Figures of collective times and bandwidths: one figure an operation, one line a group shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from profiles.arrays import Array
from profiles.observations.bandwidth import bus_factor
from profiles.plots.size_labels import set_sizes, set_times
from profiles.plots.style import SERIES, Drawn, panels
from profiles.plots.table_words import file_stem
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.curve_table import Z80
from profiles.prediction.profile import CollectiveKey

STEPS_BETWEEN = 6
GROUPS_A_FIGURE = len(SERIES)


def group_words(key: CollectiveKey) -> str:
    """``8 ranks, 1 node``."""
    nodes = f"{key.num_nodes} node" + ("s" if key.num_nodes > 1 else "")
    return f"{key.group_size} ranks, {nodes}" + (", siblings active" if key.concurrent else "")


def draw_collectives(
    device: str, operation: str, curves: Sequence[tuple[CollectiveKey, CollectiveCurve]], part: str = ""
) -> Drawn:
    """Time and bus bandwidth over size of up to seven group shapes of one operation."""
    words = operation.replace("_", " ")
    title = f"{words}: time and bus bandwidth over size" + (f" ({part})" if part else "")
    figure, (left, right) = panels(title, 1, 2, (4.8, 3.9))
    for (key, curve), (colour, marker, line) in zip(curves, SERIES, strict=False):
        fine = _between(curve.sizes)
        found = curve.predict(fine)
        fast, slow = found.time_s * np.exp(-Z80 * found.sigma), found.time_s * np.exp(Z80 * found.sigma)
        factor = bus_factor(key.operation, key.group_size) / 1e9
        points: dict[str, Any] = {
            "linestyle": "none",
            "marker": marker,
            "markersize": 4,
            "color": colour,
            "markerfacecolor": "white",
        }
        for panel, y, low, high, measured in (
            (left, found.time_s, fast, slow, curve.times_s),
            (
                right,
                fine / found.time_s * factor,
                fine / slow * factor,
                fine / fast * factor,
                curve.sizes / curve.times_s * factor,
            ),
        ):
            panel.fill_between(fine, low, high, color=colour, alpha=0.2, linewidth=0)
            panel.plot(fine, y, color=colour, linestyle=line, linewidth=1.3)
            panel.plot(curve.sizes, measured, **points)
        left.plot([], [], color=colour, linestyle=line, marker=marker, markerfacecolor="white", label=group_words(key))
    smallest, largest = min(curve.sizes[0] for _, curve in curves), max(curve.sizes[-1] for _, curve in curves)
    for panel in (left, right):
        set_sizes(panel, "x", float(smallest), float(largest), in_bytes=True)
        panel.set_xlabel("message size")
        panel.tick_params(axis="x", labelrotation=30)
    set_times(left, "y")
    left.set_ylabel("time")
    right.set_ylim(bottom=0.0)
    right.set_ylabel("bus bandwidth (GB/s)")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=4.0)
    groups = "; ".join(group_words(key) for key, _ in curves)
    caption = (
        f"Time and bus bandwidth of {words} on {device} over the message size for {groups}: measured points (median,"
        " never falling with size), the curve between them and its 80 % interval."
    )
    return Drawn(file_stem(operation, part), title, caption, figure)


def _between(sizes: Array) -> Array:
    """Sizes strictly between the measured ones, where the spread is that of the curve, not of a direct hit."""
    if len(sizes) < 2:
        return sizes
    logs = np.log2(sizes)
    steps = (np.arange(STEPS_BETWEEN) + 0.5) / STEPS_BETWEEN
    fine: Array = np.exp2((logs[:-1, None] + np.diff(logs)[:, None] * steps[None, :]).ravel())
    return fine
