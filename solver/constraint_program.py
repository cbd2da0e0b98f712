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
    # Not ``cp_model``, which is written on top of this: it imports pandas, five times what the rest of OR-Tools costs.
    from ortools.sat.python import cp_model_helper as cp_sat

    solver: Any = cp_sat.SolveWrapper()
    solver.set_parameters(_parameters(effort))
    model = _model(program, gain, hint)
    response: Any = solver.solve(model)
    infeasible = response.status == cp_sat.INFEASIBLE
    if response.status not in {cp_sat.OPTIMAL, cp_sat.FEASIBLE}:
        if response.status == cp_sat.MODEL_INVALID:
            raise ValueError(f"CP-SAT refuses the program: {cp_sat.CpSatHelper.validate_model(model)}")
        return WholeSolved(None, -LARGEST, LARGEST, optimal=False, infeasible=infeasible)
    values = tuple(map(int, response.solution))
    objective = sum(weight * values[at] for at, weight in gain.items())
    bound = max(objective, math.floor(response.best_objective_bound + 1e-6))
    return WholeSolved(values, objective, bound, optimal=response.status == cp_sat.OPTIMAL, infeasible=False)


def _parameters(effort: Effort) -> Any:
    from ortools.sat.python import cp_model_helper as cp_sat

    chosen: Any = cp_sat.SatParameters()
    chosen.random_seed, chosen.num_workers = effort.seed, effort.workers
    chosen.interleave_search = effort.workers > 1
    chosen.max_time_in_seconds, chosen.max_deterministic_time = max(effort.wall_s, 0.01), effort.deterministic_s
    chosen.relative_gap_limit = effort.relative_gap
    return chosen


def _model(program: WholeProgram, gain: Mapping[int, int], hint: Sequence[int] | None) -> Any:
    """The program as CP-SAT reads it (ortools/sat/cp_model.proto); it minimises, so gains are costs below zero."""
    from ortools.sat.python import cp_model_helper as cp_sat

    model: Any = cp_sat.CpModelProto()
    for bounds in program.bounds:
        model.variables.add().domain.extend(bounds)
    for one in program.at_most_one:
        model.constraints.add().at_most_one.literals.extend(list(one))
    for row in program.rows:
        made = model.constraints.add()
        made.linear.vars.extend(list(row.entries))
        made.linear.coeffs.extend(list(row.entries.values()))
        made.linear.domain.extend([row.low, row.high])
        if row.switch is not None:
            made.enforcement_literal.append(row.switch)
    model.objective.scaling_factor = -1.0
    model.objective.vars.extend(list(gain))
    model.objective.coeffs.extend([-weight for weight in gain.values()])
    if hint is not None:
        model.solution_hint.vars.extend(range(len(hint)))
        model.solution_hint.values.extend(list(hint))
    return model
