"""The solver of the selection problem: presolve, search, and an answer that was checked from the tables.

An answer is "optimal" only where its bound equals its cost.  The bound comes from integers (``exact_bound``), from
values and pairs removed by such bounds until nothing cheaper is left, or from HiGHS on the reduced costs of a small
core with a margin for its tolerances (``core_milp``).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from solver.selection.answer import Answer, BindingWindow, Status, TracePoint
from solver.selection.check import check_selection
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.presolve.memory_rows import node_memory
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, presolve
from solver.selection.problem import SelectionProblem
from solver.selection.search import Search
from solver.selection.shortage import explained, open_nodes

RESERVE_S = 0.05
"""Kept back from the time limit for ending threads and building the answer."""


def solve(
    problem: SelectionProblem,
    *,
    time_limit_s: float = 60.0,
    seed: int = 0,
    work_limit: int | None = None,
    threads: int = 2,
    should_stop: Callable[[], bool] | None = None,
    on_progress: Callable[[TracePoint], None] | None = None,
) -> Answer:
    """The best selection that the limits allow, and the best bound.

    Args:
        problem: tables; see ``problem``.
        time_limit_s: wall seconds; kept within about 0.2 s.
        seed: of every random choice.
        work_limit: counted kernel steps (table entries, about) instead of seconds: the same answer every time, on one
            thread; the time limit then only ends what would run past it.
        threads: how many cores to use.
        should_stop: asked often and from several threads; True ends the solve with the best so far.
        on_progress: told every new cost or bound.
    """
    started = time.monotonic()
    incumbent = Incumbent(problem, started, max(0.0, time_limit_s - RESERVE_S), work_limit, should_stop, on_progress)
    try:
        reduced = presolve(problem, incumbent.stopped)
    except Contradiction as contradiction:
        return _infeasible(incumbent, *explained(incumbent, contradiction.nodes, node_memory(problem)[1:]))
    except CapacityExceeded as exceeded:
        return _infeasible(incumbent, window=exceeded.window)
    if reduced.num_classes == 0:
        Pool(reduced, incumbent).offer(np.zeros(0, np.int64), "presolve")
        incumbent.raise_bound(reduced.constant, "presolve")
    elif not Search(reduced, incumbent, seed, threads).run():
        rows = (reduced.row_begin, reduced.row_end)
        return _infeasible(incumbent, *explained(incumbent, open_nodes(reduced), rows))
    return _answer(incumbent)


def _answer(incumbent: Incumbent) -> Answer:
    cost, choice, bound = incumbent.cost, incumbent.choice, incumbent.bound
    trace = tuple(incumbent.trace)
    if cost is None or choice is None:
        return Answer("unknown", None, None, bound, None, incumbent.wall_s(), trace)
    options = tuple(choice().tolist())
    check_selection(incumbent.problem, options, cost)
    gap = None if bound is None else (cost - bound) / max(abs(cost), 1)
    status: Status = "optimal" if bound == cost else "feasible"
    return Answer(status, cost, options, bound, gap, incumbent.wall_s(), trace)


def _infeasible(
    incumbent: Incumbent, window: BindingWindow | None = None, forbidden_nodes: tuple[int, ...] = ()
) -> Answer:
    wall_s, trace = incumbent.wall_s(), tuple(incumbent.trace)
    return Answer("infeasible", None, None, None, None, wall_s, trace, window, forbidden_nodes)
