"""Exact steps from the whole problem to a small one, and from that to a smaller.

``presolve``   classes that move together (``merge``), rows that can bind (``memory_rows``), dominated values and small
               degrees taken out in turn (``dominated``, ``eliminate``) until that pays no longer.
``restrict``   the same for a problem from which values were taken.

Both keep at least one optimum and every cost difference of what is left; ``Reduced.choice`` is the way back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.selection.answer import BindingWindow
from solver.selection.presolve.classes import NEVER, Classes, adjacency, offsets
from solver.selection.presolve.dominated import drop_dominated, drop_overflowing
from solver.selection.presolve.eliminate import eliminate_small_degrees
from solver.selection.presolve.memory_rows import binding_rows, class_memory, node_memory, row_shortage
from solver.selection.presolve.merge import merged_classes, shrink_classes
from solver.selection.problem import SelectionProblem
from solver.selection.reduced import Elimination, Graph, Memory, Reduced

MOST_ROUNDS = 6
DOMINATION_WORK = 150_000_000
"""Table entries that one search for dominated values looks at."""
DOMINATION_PART = 1_000_000
"""Table entries of the classes that are searched between two looks at the limits."""
OVERFLOW_WORK = 200_000_000


class CapacityExceeded(Exception):
    """At this window even the least usage of every class exceeds the capacity."""

    def __init__(self, window: BindingWindow) -> None:
        super().__init__(f"at least {window.least_usage} of {window.capacity} is used at {window.begin}")
        self.window = window


@dataclass(frozen=True)
class Limits:
    """Memory of the parents, and when its rows begin and end."""

    memory: Memory
    begin: Ints
    end: Ints


def presolve(problem: SelectionProblem, stopped: Callable[[], bool]) -> Reduced:
    """What is left to decide.  Raises Contradiction or CapacityExceeded where nothing is feasible."""
    classes = merged_classes(problem)
    reduced = _reduced(classes, Limits(*node_memory(problem)), problem.capacity or 0)
    return simplified(reduced, stopped)


def simplified(reduced: Reduced, stopped: Callable[[], bool]) -> Reduced:
    """Without dominated values and without classes that can answer to their neighbours; less of that once stopped."""
    for _ in range(MOST_ROUNDS):
        before = reduced.num_cells + reduced.unary.size
        if stopped():
            break
        reduced = _without_dominated(reduced, stopped)
        if stopped():
            break
        classes, steps = eliminate_small_degrees(reduced)
        if steps:
            reduced = _below(reduced, shrink_classes(classes), steps)
        if reduced.num_cells + reduced.unary.size > 0.98 * before:
            break
    return reduced


def _without_dominated(reduced: Reduced, stopped: Callable[[], bool]) -> Reduced:
    """Without values that overflow or that another one dominates; as it was once stopped."""
    graph, alive = reduced.graph, np.ones(reduced.unary.size, np.bool_)
    drop_overflowing(graph, reduced.memory, alive, OVERFLOW_WORK)
    witness = cheapest(reduced.unary, graph.start)
    tables, work = (reduced.unary, reduced.table, alive, witness), 0
    # A kernel runs to its end: large problems are given to it a part at a time.
    parts = 1 + reduced.num_cells // DOMINATION_PART
    borders = np.linspace(0, reduced.num_classes, parts + 1, dtype=np.int64).tolist()
    for first, last in pairwise(borders):
        if stopped():
            return reduced
        work += drop_dominated(graph, reduced.memory, *tables, first, last, DOMINATION_WORK - work)
        if work > DOMINATION_WORK:
            break
    return reduced if alive.all() or stopped() else restrict(reduced, alive)


def restrict(reduced: Reduced, alive: NDArray[np.bool_], table: Ints | None = None) -> Reduced:
    """The same without the values whose ``alive`` (bool[U]) is false, shrunk again; ``table`` may forbid further pairs.

    Raises Contradiction or CapacityExceeded where what is left permits nothing.
    """
    graph = reduced.graph
    itself = Classes(
        sizes=graph.sizes,
        unary=np.where(alive, reduced.unary, NEVER),
        edge_a=graph.edge_a,
        edge_b=graph.edge_b,
        table=reduced.table if table is None else table,
        option_counts=graph.sizes,
        node_class=np.arange(graph.sizes.size, dtype=np.int64),
        node_value=np.arange(graph.start[-1], dtype=np.int64) - np.repeat(graph.start[:-1], graph.sizes),
    )
    return _below(reduced, shrink_classes(itself))


def _below(reduced: Reduced, classes: Classes, steps: tuple[Elimination, ...] = ()) -> Reduced:
    limits = Limits(reduced.memory, reduced.row_begin, reduced.row_end)
    return replace(_reduced(classes, limits, 0, reduced.constant), eliminations=steps, above=reduced)


def _reduced(classes: Classes, limits: Limits, capacity: int, constant: int = 0) -> Reduced:
    """Find the binding rows and take out the classes that nothing connects to a decision."""
    memory = class_memory(limits.memory, classes)
    shortage = row_shortage(memory, classes.sizes)
    if shortage is not None:
        row, missing = shortage
        window = BindingWindow(int(limits.begin[row]), int(limits.end[row]), capacity + missing, capacity)
        raise CapacityExceeded(window)
    memory, kept = binding_rows(memory, classes.sizes)
    has_edge = np.zeros(classes.sizes.size, np.bool_)
    has_edge[classes.edge_a] = has_edge[classes.edge_b] = True
    open_ = (classes.sizes > 1) & (has_edge | (np.diff(memory.class_seg) > 0))
    start = classes.start
    best = cheapest(classes.unary, start)
    constant += sum(classes.unary[start[:-1] + best][~open_].tolist())
    position = np.full(classes.sizes.size, -1, np.int64)
    position[open_] = np.arange(int(open_.sum()))
    sizes = classes.sizes[open_]
    ends = (position[classes.edge_a], position[classes.edge_b])
    graph = Graph(sizes, offsets(sizes), *ends, classes.edge_start, *adjacency(sizes.size, *ends))
    segments = (position[memory.seg_class], *memory[1:5], offsets(np.diff(memory.class_seg)[open_]))
    option_first, option_of = _options_by_value(classes)
    settled = np.zeros(classes.node_class.size, np.int64)
    if classes.sizes.size:
        settled = option_of[option_first + best[classes.node_class]]
    return Reduced(
        graph=graph,
        unary=classes.unary[np.repeat(open_, classes.sizes)],
        table=classes.table,
        memory=Memory(*segments, memory.slack),
        row_begin=limits.begin[kept],
        row_end=limits.end[kept],
        constant=constant,
        node_class=position[classes.node_class],
        option_of=option_of,
        option_first=option_first,
        settled=settled,
    )


def cheapest(unary: Ints, start: Ints) -> Ints:
    """The first cheapest value of each class."""
    if start.size == 1:
        return np.zeros(0, np.int64)
    sizes = np.diff(start)
    least = np.repeat(np.minimum.reduceat(unary, start[:-1]), sizes)
    candidates = np.flatnonzero(unary == least)
    owner = np.searchsorted(start, candidates, side="right") - 1
    _, first = np.unique(owner, return_index=True)
    return np.asarray(candidates[first] - start[:-1])


def _options_by_value(classes: Classes) -> tuple[Ints, Ints]:
    """Where each parent begins in the list of options ordered by class value, and that list."""
    first = offsets(classes.sizes[classes.node_class])
    counts = classes.option_counts
    option = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    live = classes.node_value >= 0
    option_of = np.zeros(int(first[-1]), np.int64)
    option_of[(np.repeat(first[:-1], counts) + classes.node_value)[live]] = option[live]
    return first[:-1], option_of
