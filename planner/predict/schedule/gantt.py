"""A simulated step as a text chart for the terminal.

One row a rank, one column an equal part of the step.  A column shows what the rank does for most of that time:
``F`` forward, ``B`` backward, ``I`` input gradient, ``W`` weight gradient (lower case: not the rank's first chunk),
``.`` nothing (idle).  No colour codes; plain ASCII.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.errors import DocumentInvalid
from planner.predict.schedule.action import KINDS
from planner.predict.schedule.dependencies import KIND_NAMES
from planner.predict.schedule.timeline import RankTimeline, Timeline
from solver.arrays import Array, Ints

_SMALLEST_CHART = 10
IDLE = "."


def text_gantt(timeline: Timeline, width: int = 100, max_rows: int = 32) -> str:
    """The chart, at most ``width`` characters wide; the middle ranks are left out beyond ``max_rows``.

    Raises ``DocumentInvalid`` when ``width`` leaves fewer than 10 columns for the chart, or ``max_rows`` is below 2.
    """
    ranks = timeline.num_ranks
    labels = [f"rank {rank:>{len(str(ranks - 1))}} |" for rank in range(ranks)]
    notes = [_note(timeline, rank) for rank in range(ranks)]
    columns = width - len(labels[0]) - max(map(len, notes))
    if columns < _SMALLEST_CHART or max_rows < 2:
        raise DocumentInvalid(
            f"a Gantt chart of width {width} and {max_rows} rows is too small",
            where="gantt#/width",
            hint=f"width at least {width - columns + _SMALLEST_CHART}, max_rows at least 2",
        )
    rows = [
        labels[rank] + _row(timeline.rank(rank), timeline.makespan_s, columns) + notes[rank] for rank in range(ranks)
    ]
    if ranks > max_rows:
        head = (max_rows + 1) // 2
        left_out = ranks - max_rows
        rows = [*rows[:head], f"  ({left_out} ranks left out)", *rows[ranks - (max_rows - head) :]]
    axis = " " * len(labels[0]) + _axis(timeline.makespan_s, columns)
    return "\n".join([*rows, axis.rstrip(), _legend(timeline, width)])


def _note(timeline: Timeline, rank: int) -> str:
    share = timeline.busy_s[rank] / timeline.makespan_s if timeline.makespan_s else 0.0
    return f"| {100 * share:3.0f} % busy, holds {int(timeline.peak_in_flight[rank])}"


def _row(rank: RankTimeline, makespan_s: float, columns: int) -> str:
    """One character a column: the action that takes most of it, or a point where idling takes more."""
    edges = np.linspace(0.0, makespan_s, columns + 1)
    first_chunk = int(rank.chunk.min())
    letters, shares = [IDLE], [np.zeros(columns)]
    for code, kind in enumerate(KINDS):
        for first in (True, False):
            mine = (rank.kind == code) & ((rank.chunk == first_chunk) == first)
            if mine.any():
                letters.append(kind.value if first else kind.value.lower())
                shares.append(_time_in_columns(rank, mine, edges))
    shares[0] = np.diff(edges) - np.sum(shares, axis=0)
    longest: Ints = np.argmax(np.stack(shares), axis=0)
    return "".join(letters[index] for index in longest.tolist())


def _time_in_columns(rank: RankTimeline, mine: NDArray[np.bool_], edges: Array) -> Array:
    """Seconds of each column that the chosen actions take: differences of their cumulated time at the edges."""
    start_s, end_s = rank.start_s[mine], rank.end_s[mine]
    done_s = np.cumsum(end_s - start_s)
    points = np.column_stack([start_s, end_s]).ravel()
    cumulated = np.column_stack([done_s - (end_s - start_s), done_s]).ravel()
    return np.diff(np.interp(edges, points, cumulated))


def _axis(makespan_s: float, columns: int) -> str:
    end = _seconds(makespan_s)
    return "0" + end.rjust(columns - 1)


def _seconds(value_s: float) -> str:
    """A time for people."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value_s >= scale:
            return f"{value_s / scale:.4g} {unit}"
    return f"{value_s / 1e-6:.4g} us"


def _legend(timeline: Timeline, width: int) -> str:
    present = set(np.unique(timeline.graph.kind).tolist())
    parts = [f"{kind.value} {KIND_NAMES[kind]}" for code, kind in enumerate(KINDS) if code in present]
    if timeline.graph.num_chunks > timeline.num_ranks:
        parts.append("lower case: later chunks")
    parts.append(f"{IDLE} idle ({100 * timeline.bubble_fraction:.1f} % of the time shown)")
    lines, line = [], ""
    for part in parts:
        grown = f"{line}   {part}" if line else part
        if line and len(grown) > width:
            lines.append(line)
            grown = part
        line = grown
    return "\n".join([*lines, line])
