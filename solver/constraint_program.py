"""A program in whole numbers, and the only place that talks to its solver, CP-SAT of OR-Tools.

Maximise     sum_v gain[v] x_v
Subject to   low <= sum_v a[v] x_v <= high   for every row, or only where its switch (a column of 0 or 1) is 1
             lower[v] <= x_v <= upper[v],    x_v whole

One worker, a fixed seed and a limit of deterministic time give the same answer on every machine, as long as the limit
of wall time, which is there for slow machines, does not end the search first (ortools/sat/sat_parameters.proto,
``max_deterministic_time``, ``interleave_search``; OR-Tools 9.15).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LARGEST = 2**50
"""Sums of coefficients stay below what CP-SAT holds (64 bits)."""


@dataclass(frozen=True, slots=True)
class Row:
    """``low <= sum of entries <= high``; with ``switch`` only where that column is 1."""

    entries: Mapping[int, int]
    low: int
    high: int
    switch: int | None = None


@dataclass(slots=True)
class WholeProgram:
    """See the module's text.  Columns are numbered as they are added."""

    bounds: list[tuple[int, int]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    at_most_one: list[Sequence[int]] = field(default_factory=list)
    """Columns of 0 or 1, of which one at the most is 1: said apart, because CP-SAT makes more of it than of a row."""

    def column(self, lower: int, upper: int) -> int:
        """A new column."""
        self.bounds.append((lower, upper))
        return len(self.bounds) - 1

    def add(
        self, entries: Mapping[int, int], low: int = -LARGEST, high: int = LARGEST, switch: int | None = None
    ) -> None:
        """A new row."""
        self.rows.append(Row(entries, low, high, switch))


@dataclass(frozen=True, slots=True)
class Effort:
    """When to give up: seconds of the clock, and of CP-SAT's own deterministic time."""

    wall_s: float
    deterministic_s: float
    seed: int = 0
    workers: int = 1
    relative_gap: float = 0.0


@dataclass(frozen=True, slots=True)
class WholeSolved:
    """``values``: the best point, if one was found; ``bound`` >= every objective.  ``infeasible``: proved to be so."""

    values: tuple[int, ...] | None
    objective: int
    bound: int
    optimal: bool
    infeasible: bool


def solve_whole(
    program: WholeProgram, gain: Mapping[int, int], effort: Effort, hint: Sequence[int] | None = None
) -> WholeSolved:
    """The greatest objective, or the best point and bound within the effort; ``hint`` is a point to start from."""
    from ortools.sat.python import cp_model

    model: Any = cp_model.CpModel()
    columns = [
        model.new_bool_var("") if bounds == (0, 1) else model.new_int_var(*bounds, "") for bounds in program.bounds
    ]
    for one in program.at_most_one:
        model.add_at_most_one(columns[at] for at in one)
    for row in program.rows:
        total = cp_model.LinearExpr.weighted_sum([columns[at] for at in row.entries], list(row.entries.values()))
        made = model.add_linear_constraint(total, row.low, row.high)
        if row.switch is not None:
            made.only_enforce_if(columns[row.switch])
    model.maximize(cp_model.LinearExpr.weighted_sum([columns[at] for at in gain], list(gain.values())))
    if hint is not None:
        for column, value in zip(columns, hint, strict=True):
            model.add_hint(column, value)
    solver = cp_model.CpSolver()
    chosen = solver.parameters
    chosen.random_seed, chosen.num_workers = effort.seed, effort.workers
    chosen.interleave_search = effort.workers > 1
    chosen.max_time_in_seconds, chosen.max_deterministic_time = max(effort.wall_s, 0.01), effort.deterministic_s
    chosen.relative_gap_limit = effort.relative_gap
    status = solver.solve(model)
    infeasible = status == cp_model.INFEASIBLE
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        if status == cp_model.MODEL_INVALID:
            raise ValueError(f"CP-SAT refuses the program: {model.validate()}")
        return WholeSolved(None, -LARGEST, LARGEST, optimal=False, infeasible=infeasible)
    values = tuple(solver.value(column) for column in columns)
    objective = sum(weight * values[at] for at, weight in gain.items())
    bound = max(objective, math.floor(solver.best_objective_bound + 1e-6))
    return WholeSolved(values, objective, bound, optimal=status == cp_model.OPTIMAL, infeasible=False)
