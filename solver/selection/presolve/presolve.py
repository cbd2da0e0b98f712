"""What must still be decided?  Classes, binding rows, and everything settled taken out.

``presolve(problem)`` keeps at least one optimum and every cost difference; ``Reduced.expand`` is the way back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solver.selection.presolve.classes import NEVER, Classes, adjacency, offsets
from solver.selection.presolve.memory_rows import binding_rows
from solver.selection.presolve.merge import merged_classes, shrink_classes
from solver.selection.problem import Integers, SelectionProblem
from solver.selection.reduced import Graph, Memory, Reduced


def presolve(problem: SelectionProblem) -> tuple[Classes, Reduced]:
    """The classes, and what is left to decide.  Raises Contradiction or CapacityExceeded where nothing is feasible."""
    classes = merged_classes(problem)
    return classes, reduce_classes(problem, classes)


def restrict(problem: SelectionProblem, classes: Classes, alive: NDArray[np.bool_]) -> tuple[Classes, Reduced]:
    """The same without the class values whose ``alive`` (bool[sum of sizes]) is false, shrunk again."""
    fewer = shrink_classes(replace(classes, unary=np.where(alive, classes.unary, NEVER)))
    return fewer, reduce_classes(problem, fewer)


def reduce_classes(problem: SelectionProblem, classes: Classes) -> Reduced:
    """Find the binding rows and take out the classes that nothing connects to a decision."""
    memory, times = binding_rows(problem, classes)
    has_edge = np.zeros(classes.sizes.size, np.bool_)
    has_edge[classes.edge_a] = has_edge[classes.edge_b] = True
    open_ = (classes.sizes > 1) & (has_edge | (np.diff(memory.class_seg) > 0))
    start = classes.start
    best = _cheapest(classes.unary, start)
    constant = sum(int(cost) for cost in classes.unary[start[:-1] + best][~open_])
    position = np.full(classes.sizes.size, -1, np.int64)
    position[open_] = np.arange(int(open_.sum()))
    sizes = classes.sizes[open_]
    ends = (position[classes.edge_a], position[classes.edge_b])
    graph = Graph(sizes, offsets(sizes), *ends, classes.edge_start, *adjacency(sizes.size, *ends))
    unary = classes.unary[np.repeat(open_, classes.sizes)]
    kept = Memory(position[memory.seg_class], *memory[1:5], offsets(np.diff(memory.class_seg)[open_]), memory.slack)
    option_first, option_of = _options_by_value(classes)
    settled = option_of[option_first + best[classes.node_class]] if classes.sizes.size else classes.node_class
    return Reduced(
        graph, unary, classes.table, kept, times, constant, position[classes.node_class], option_of, option_first, settled
    )


def _cheapest(unary: Integers, start: Integers) -> Integers:
    """The first cheapest value of each class."""
    if start.size == 1:
        return np.zeros(0, np.int64)
    sizes = np.diff(start)
    least = np.repeat(np.minimum.reduceat(unary, start[:-1]), sizes)
    candidates = np.flatnonzero(unary == least)
    owner = np.searchsorted(start, candidates, side="right") - 1
    _, first = np.unique(owner, return_index=True)
    return candidates[first] - start[:-1]


def _options_by_value(classes: Classes) -> tuple[Integers, Integers]:
    """Where each node begins in the list of options ordered by class value, and that list."""
    sizes = classes.sizes[classes.node_class]
    first = offsets(sizes)
    counts = classes.option_counts
    option = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    live = classes.node_value >= 0
    option_of = np.zeros(int(first[-1]), np.int64)
    option_of[(np.repeat(first[:-1], counts) + classes.node_value)[live]] = option[live]
    return first[:-1], option_of
