"""The smallest window in which the nodes are proved not to fit into the capacity.

A window [begin, end) is too small where no permitted choice keeps the usage within the capacity at all its times, all
other times left out.  That is asked of the same engines without costs: every permitted selection costs 0, and the tree
looks for one cheaper than 1.  A window around one that is too small is too small, so that two binary searches over the
rows, for the latest begin and then for the earliest end, lead to a window in which nothing can be left out.

Each question has ``QUESTION_S`` seconds (``QUESTION_WORK`` where work is limited), all of them ``EXPLANATION_S``; one
that stays open counts as fitting, so that a window named is always too small, and the smallest unless that happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solver.arrays import Ints
from solver.selection.answer import BindingWindow
from solver.selection.branch import Tree
from solver.selection.cutting import Part, ascend_steps
from solver.selection.dual import Dual
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, presolve
from solver.selection.problem import FORBIDDEN, SelectionProblem
from solver.selection.reduced import Reduced

QUESTION_S = 1.0
QUESTION_WORK = 50_000_000
EXPLANATION_S = 5.0
ASCENT_STEPS = 100

Rows = tuple[Ints, Ints]
Explanation = tuple[BindingWindow | None, tuple[int, ...]]


def explained(incumbent: Incumbent, nodes: tuple[int, ...], rows: Rows) -> Explanation:
    """The window that is too small, or ``nodes`` where they exclude each other whatever they use.

    Given that no selection is possible; ``rows``: when the rows begin and end that no selection keeps.
    """
    problem = incumbent.problem
    limit_s = min(incumbent.left_s(), EXPLANATION_S)
    limits = Incumbent(problem, time.monotonic(), limit_s, incumbent.work_limit, incumbent.should_stop)
    if rows[0].size == 0 or exceeds(replace(problem_within(problem, 0, 0), capacity=None), limits):
        return None, nodes
    return smallest_window(limits, *rows), ()


def open_nodes(reduced: Reduced) -> tuple[int, ...]:
    """The nodes that presolve has not decided."""
    steps = [reduced]
    while steps[-1].above is not None:
        steps.append(steps[-1].above)
    position = np.arange(steps[-1].node_class.size, dtype=np.int64)
    for step in reversed(steps):
        position = np.append(step.node_class, -1)[position]
    return tuple(np.flatnonzero(position >= 0).tolist())


def smallest_window(limits: Incumbent, row_begin: Ints, row_end: Ints) -> BindingWindow:
    """The window to name, given that no selection keeps all these rows."""
    problem = limits.problem
    begins, ends = row_begin.tolist(), row_end.tolist()

    def too_small(first: int, last: int) -> bool:
        return exceeds(problem_within(problem, begins[first], ends[last]), limits)

    last = len(begins) - 1
    first = _furthest(0, last, lambda row: too_small(row, last))
    last = len(begins) - 1 - _furthest(0, last - first, lambda cut: too_small(first, len(begins) - 1 - cut))
    capacity = problem.capacity or 0
    return BindingWindow(begins[first], ends[last], capacity + 1, capacity)


def problem_within(problem: SelectionProblem, begin: int, end: int) -> SelectionProblem:
    """The same without costs, and without usage outside of a window."""
    live_from, live_until = np.maximum(problem.live_from, begin), np.minimum(problem.live_until, end)
    inside = live_from < live_until
    return replace(
        problem,
        live_from=np.where(inside, live_from, 0),
        live_until=np.where(inside, live_until, 0),
        node_costs=np.where(problem.node_costs < FORBIDDEN, 0, FORBIDDEN),
        edge_costs=np.where(problem.edge_costs < FORBIDDEN, 0, FORBIDDEN),
    )


def exceeds(problem: SelectionProblem, limits: Incumbent) -> bool:
    """Whether it is proved that no choice fits, within the limits of a question and of the solve."""
    seconds = limits.left_s() if limits.work_limit is not None else min(QUESTION_S, limits.left_s())
    if seconds <= 0:
        return False
    work = None if limits.work_limit is None else QUESTION_WORK
    own = Incumbent(problem, time.monotonic(), seconds, work, limits.should_stop, cost=1)
    try:
        reduced = presolve(problem, own.stopped)
        dual = Dual(reduced, Pool(reduced, own))
        if reduced.num_classes == 0:
            return False
        ascend_steps(dual, ASCENT_STEPS)
        tree = Tree(Part(reduced, dual, dual.prove().bound), own)
        tree.work(own.stopped)
    except (Contradiction, CapacityExceeded):
        return True
    return own.cost == 1 and (tree.done or own.closed())


def _furthest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest number from low to high that holds, where all below one that holds do and ``low`` does."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
