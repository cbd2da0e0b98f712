"""A mixed-integer program as arrays, and the only place that talks to its solver, HiGHS.

Minimise     cost x
Subject to   row_lower <= A x <= row_upper,   lower <= x <= upper,   x[c] whole where ``integer[c]``

A is given as triplets; entries of one place add up.  Infinite bounds are NumPy's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array, Ints

SILENCE_S = 0.4
"""HiGHS may look at no limit for so long (0.45 processor seconds were seen), so that it is given less than is left."""


@dataclass(frozen=True)
class Triplets:
    """Entries of a matrix: ``entries[i]`` stands at (``rows[i]``, ``columns[i]``)."""

    rows: Ints
    columns: Ints
    entries: Array


@dataclass(frozen=True)
class Program:
    """See the module's text; one entry a column, but ``row_lower`` and ``row_upper``."""

    cost: Array
    lower: Array
    upper: Array
    integer: NDArray[np.bool_]
    matrix: Triplets
    row_lower: Array
    row_upper: Array


@dataclass(frozen=True)
class Limits:
    """When to give up: a flag, wall seconds (HiGHS looks at them more often), a count of nodes for the same path."""

    interrupted: Callable[[], bool]
    left_s: float
    max_nodes: int | None = None
    threads: int = 1


@dataclass(frozen=True)
class Solved:
    """``values``: a feasible point, if one was found; ``bound`` <= every objective, -inf where nothing is proved."""

    values: Array | None
    bound: float
    optimal: bool
    infeasible: bool


def solve_program(program: Program, limits: Limits, options: Mapping[str, Any]) -> Solved:
    """The least objective, or the best point and bound within the limits; ``options`` are HiGHS's own words."""
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    time_limit_s = max(0.5 * limits.left_s, limits.left_s - SILENCE_S, 0.0)
    chosen = {
        "output_flag": False,
        "time_limit": time_limit_s,
        "threads": limits.threads,
        "parallel": "on" if limits.threads > 1 else "off",
        **options,
    }
    if limits.max_nodes is not None:
        chosen["mip_max_nodes"] = limits.max_nodes
    for name, value in chosen.items():
        highs.setOptionValue(name, value)
    highs.passModel(_model(highspy, program))
    end = time.monotonic() + time_limit_s

    def stop(event: Any) -> None:
        if limits.interrupted() or time.monotonic() > end:
            event.data_in.user_interrupt = True

    for callback in (highs.cbMipInterrupt, highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
        callback.subscribe(stop)
    highs.run()
    status, info, words = highs.getModelStatus(), highs.getInfo(), highspy.HighsModelStatus
    if status in {words.kInfeasible, words.kUnboundedOrInfeasible}:
        return Solved(None, np.inf, optimal=False, infeasible=True)
    values = np.array(highs.getSolution().col_value) if info.primal_solution_status == 2 else None
    bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else -np.inf
    return Solved(values, bound, optimal=status == words.kOptimal, infeasible=False)


def _model(highspy: Any, program: Program) -> Any:
    """The program in HiGHS's form: compressed columns."""
    matrix, size = program.matrix, program.cost.size
    order = np.lexsort((matrix.rows, matrix.columns))
    rows, columns, entries = matrix.rows[order], matrix.columns[order], matrix.entries[order]
    first = np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(columns, prepend=-1))
    start = np.searchsorted(columns[first], np.arange(size + 1))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.col_cost_ = size, program.row_lower.size, program.cost
    lp.col_lower_, lp.col_upper_ = program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = start.astype(np.int32), rows[first].astype(np.int32)
    lp.a_matrix_.value_ = np.add.reduceat(entries, first) if first.size else entries
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in program.integer.tolist()]
    return lp
