"""The rows and panels of a figure: the largest groups each in its own panel, the others together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

MOST_PANELS = 6
OTHERS = "all others"
LONGEST_NAME = 34
THINNED_TO = 100
"""Cells along a side of a panel: of the markers in one cell, which would cover each other, one is drawn."""


def panels_of(rows: Iterable[Row], least: int = 1) -> dict[str, list[Row]]:
    """Rows by panel: the largest groups with at least ``least`` rows, and all others together if there are more."""
    known = list(rows)
    counts = Counter(row["group"] for row in known)
    names = sorted(counts, key=lambda name: (-counts[name], name))
    largest = [name for name in names if counts[name] >= least]
    own = names if len(largest) == len(names) <= MOST_PANELS else largest[: MOST_PANELS - 1]
    panels: dict[str, list[Row]] = defaultdict(list)
    for row in known:
        panels[row["group"] if row["group"] in own else OTHERS].append(row)
    order = [*own, OTHERS] if OTHERS in panels else own
    return {name: panels[name] for name in order}


def panel_title(name: str, rows: Sequence[Row]) -> str:
    """``vTrain, one node (611)``."""
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return f"{short} ({len(rows):,})"


def grid(count: int) -> tuple[int, int]:
    """Rows and columns of panels."""
    columns = min(count, 3)
    return -(-count // columns), columns


def framed(figure: Figure, axes: Sequence[Axes], count: int, x_words: str, y_words: str, handle_length: float) -> None:
    """Hide the panels beyond ``count``, name the outer axes of the others, and say once what their lines are."""
    _, width = grid(count)
    for panel in axes[count:]:
        panel.set_visible(False)
    for place, panel in enumerate(axes[:count]):
        if place % width == 0:
            panel.set_ylabel(y_words)
        if place + width >= count:
            panel.set_xlabel(x_words)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), handlelength=handle_length)


def column(rows: Sequence[Row], name: str) -> Array:
    """Values of one field."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def thinned(x: Array, y: Array, low: float, high: float) -> NDArray[np.int64]:
    """Indices of the markers to draw: one a cell of a grid over the panel's logarithmic range."""
    scale = THINNED_TO / max(np.log(high / low), 1e-9)
    cells = np.stack([np.floor(np.log(values / low) * scale) for values in (x, y)], axis=1)
    _, first = np.unique(cells, axis=0, return_index=True)
    return np.sort(first)


def judged(rows: Iterable[Row]) -> list[Row]:
    """Rows that chose no constant."""
    return [row for row in rows if not row["fitted"]]


def held_out(rows: Iterable[Row]) -> list[Row]:
    """Rows that chose no constant and did not calibrate."""
    return [row for row in judged(rows) if row.get("held_out", True)]


def having(rows: Iterable[Row], *names: str) -> list[Row]:
    """Rows in which all of these fields are known."""
    return [row for row in rows if all(row[name] is not None for name in names)]
