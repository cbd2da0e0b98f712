"""The best selection of a small core: a mixed-integer program on reduced costs (``mixed_integer`` solves it).

Variables    s[c, v] in {0, 1}; y[e, k, m] >= 0 for pairs that may be in a better selection; left[r] >= 0: free slack
Objective    minimise  sum U_c(v) s[c, v] + sum T_e(k, m) y[e, k, m] + sum P_r left[r]     (``exact_bound``, minima out)
Constraints  (1) sum_v s[c, v] = 1                                        for each class c
             (2) sum_m y[e, k, m] = s[a, k],  sum_k y[e, k, m] = s[b, m]  for each edge e: the local polytope
             (3) left[r - 1] - left[r] = change of usage into row r       for each row: a chain keeps the rows sparse

Adding the proven bound B gives the cost of a selection up to what ``exact_bound`` rounds down (at most a unit in 2^20
per segment), so the program's bound plus B is a bound.  Because every coefficient is a reduced cost, all numbers lie
within the gap that is still open, and HiGHS's tolerances are relative to that gap, not to the cost.
Margin: the dual values may be off by ``TOLERANCE`` in each column; a selection uses one column per class and edge and
the free slack of each row, so its cost is off by at most TOLERANCE (C + E + R) in the scaled objective, and that is
taken off the bound twice over before it is rounded up to the next integer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.mixed_integer import Limits, Program, Solved, Triplets, solve_program
from solver.selection.exact_bound import ReducedCosts
from solver.selection.presolve.classes import NEVER
from solver.selection.reduced import Memory, Reduced

TOLERANCE = 1e-9
LARGEST_COEFFICIENT = 1e6
OPTIONS = {
    "presolve": "off",  # what it would find is gone already, and it looks at no limit while it runs
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-7,
    "mip_feasibility_tolerance": 1e-7,
    "primal_feasibility_tolerance": 1e-8,
    "dual_feasibility_tolerance": TOLERANCE,
}


@dataclass(frozen=True)
class CoreAnswer:
    """``bound`` <= the cost of every selection cheaper than the incumbent; ``proved``: nothing is left to search."""

    values: Ints | None
    bound: int | None
    proved: bool
    infeasible: bool


@dataclass
class Columns:
    """The program column by column, as triplets."""

    rows: list[NDArray[np.int64]]
    columns: list[NDArray[np.int64]]
    entries: list[NDArray[np.float64]]
    right: list[NDArray[np.float64]]
    count: int = 0

    def add(self, rows: Ints, columns: Ints, entries: NDArray[np.float64]) -> None:
        """Entries of the matrix."""
        self.rows.append(rows)
        self.columns.append(columns)
        self.entries.append(entries)


def solve_core(reduced: Reduced, costs: ReducedCosts, cost_limit: int | None, limits: Limits) -> CoreAnswer:
    """The best selection cheaper than ``cost_limit``, or proof that there is none."""
    gap = np.inf if cost_limit is None else float(cost_limit - costs.bound_exact)
    pairs = _pairs(reduced, costs, gap)
    coefficients = np.concatenate([costs.unary, costs.table[pairs], np.zeros(reduced.num_rows)])
    unit = max(1.0, float(np.median(reduced.memory.slack))) if reduced.num_rows else 1.0
    coefficients[coefficients.size - reduced.num_rows :] = costs.price * unit
    scale = max(1.0, float(np.abs(coefficients).max(initial=0.0)) / LARGEST_COEFFICIENT)
    options = OPTIONS if cost_limit is None else {**OPTIONS, "objective_bound": gap / scale + _margin(reduced)}
    solved = solve_program(_program(reduced, pairs, coefficients / scale, unit), limits, options)
    return _answer(solved, reduced, costs, scale)


def _margin(reduced: Reduced) -> float:
    """How far the scaled objective of a selection may be off, twice over."""
    return 2 * TOLERANCE * (reduced.num_classes + reduced.graph.edge_a.size + reduced.num_rows)


def _pairs(reduced: Reduced, costs: ReducedCosts, gap: float) -> Ints:
    """The table entries that a selection cheaper than the limit may use."""
    graph = reduced.graph
    cells = np.diff(graph.edge_start)
    edge = np.repeat(np.arange(cells.size), cells)
    inside = np.arange(reduced.table.size, dtype=np.int64) - np.repeat(graph.edge_start[:-1], cells)
    k, m = np.divmod(inside, graph.sizes[graph.edge_b[edge]])
    least = costs.table + costs.unary[graph.start[graph.edge_a[edge]] + k]
    least += costs.unary[graph.start[graph.edge_b[edge]] + m]
    return np.flatnonzero((reduced.table < NEVER) & (least <= gap))


def _program(reduced: Reduced, pairs: Ints, objective: NDArray[np.float64], unit: float) -> Program:
    """The module's program."""
    graph, memory = reduced.graph, reduced.memory
    num_values, num_rows = reduced.unary.size, reduced.num_rows
    owner = np.repeat(np.arange(reduced.num_classes), graph.sizes)
    parts = Columns([owner], [np.arange(num_values)], [np.ones(num_values)], [np.ones(reduced.num_classes)])
    parts.count = reduced.num_classes
    edge = np.searchsorted(graph.edge_start, pairs, side="right") - 1
    k, m = np.divmod(pairs - graph.edge_start[edge], graph.sizes[graph.edge_b[edge]])
    column = num_values + np.arange(pairs.size)
    for ends, value in ((graph.edge_a, k), (graph.edge_b, m)):
        first = parts.count + np.concatenate([[0], np.cumsum(graph.sizes[ends])])
        parts.add(first[edge] + value, column, np.ones(pairs.size))
        each = np.repeat(np.arange(ends.size), graph.sizes[ends])
        rows = np.arange(first[0], first[-1])
        parts.add(rows, graph.start[ends[each]] + rows - first[each], -np.ones(rows.size))
        parts.right.append(np.zeros(rows.size))
        parts.count = int(first[-1])
    _add_memory(parts, memory, graph.start, num_values + pairs.size, unit)
    num_columns = num_values + pairs.size + num_rows
    right = np.concatenate(parts.right)
    return Program(
        cost=objective,
        lower=np.zeros(num_columns),
        upper=np.concatenate([np.ones(num_values + pairs.size), memory.slack / unit]),
        integer=np.arange(num_columns) < num_values,
        matrix=Triplets(np.concatenate(parts.rows), np.concatenate(parts.columns), np.concatenate(parts.entries)),
        row_lower=right,
        row_upper=right,
    )


def _add_memory(parts: Columns, memory: Memory, start: Ints, first_left: int, unit: float) -> None:
    """Rows (3): left[r - 1] - left[r] - change of usage = slack[r - 1] - slack[r], all in ``unit``."""
    num_rows = memory.slack.size
    rows = parts.count + np.arange(num_rows)
    left = first_left + np.arange(num_rows)
    parts.add(rows, left, -np.ones(num_rows))
    parts.add(rows[1:], left[:-1], np.ones(max(num_rows - 1, 0)))
    sizes = np.diff(memory.seg_start)
    segment = np.repeat(np.arange(sizes.size), sizes)
    value = start[memory.seg_class[segment]] + np.arange(memory.seg_usage.size) - memory.seg_start[segment]
    used = memory.seg_usage > 0
    begins, ends = parts.count + memory.seg_lo[segment], parts.count + memory.seg_hi[segment]
    parts.add(begins[used], value[used], -memory.seg_usage[used] / unit)
    ending = used & (memory.seg_hi[segment] < num_rows)
    parts.add(ends[ending], value[ending], memory.seg_usage[ending] / unit)
    parts.right.append(-np.diff(memory.slack, prepend=0) / unit)
    parts.count += num_rows


def _answer(solved: Solved, reduced: Reduced, costs: ReducedCosts, scale: float) -> CoreAnswer:
    if solved.infeasible:
        return CoreAnswer(None, None, proved=True, infeasible=True)
    values = None
    if solved.values is not None:
        start = reduced.graph.start
        values = np.array([int(np.argmax(solved.values[a:b])) for a, b in pairwise(start)], np.int64)
    bound = None
    if np.isfinite(solved.bound):
        margin = _margin(reduced) + 1e-12 * abs(solved.bound)
        bound = costs.lift((solved.bound - margin) * scale)
    return CoreAnswer(values, bound, proved=solved.optimal, infeasible=False)
