"""The same question as a mixed-integer program: an independent check of ``assign`` on small problems.

Variables    x[e, a, c, o, k] in {0, 1}: the stage with e - 1 stages behind it holds [a, a + c), option o, policy k;
             y[e, o, o'] >= 0: a stage on o stands before one on o' at position e;  A the peak, B the late work.
Objective    minimise  (G - 1) A + sum t x + sum hop y + B
Constraints  (1) one stage ends the line; a stage starts where the next one in front stops       ``_add_path``
             (2) sum n_o x <= N_p for every pool                                                 ``_add_units``
             (3) variables exist for finite times only                                           ``_entries``
             (4) no start at the first item before position ``fewest`` or after ``most``         ``_entries``
             (5) A >= sum w t x of each position;  B >= sum d x - h sum t x of those in front    ``_add_peak_and_late``
             (6) y[e, o, o'] >= sum x[e + 1, o] + sum x[e, o'] - 1                                ``_add_hops``
             (7) A >= u sum t x of each position + v sum t x and q sum hop y of those behind,
                 where a stage has the position                                                   ``_add_mixed_paces``

HiGHS solves it to a gap of zero.  Only ``StableAndLate`` is linear in these variables.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.math_opt.python import mathopt

from solver.arrays import Array
from solver.stage_assignment.tables import AssignmentTables, StageChoice
from tests.selection_milp import highs_parameters


@dataclass(frozen=True, slots=True)
class StableAndLate:
    """``(G - 1) peak + total + hops + late`` for G rounds: Mist's objective, with the hops added."""

    rounds: int
    hides: float = 1.0

    def value(self, peak: Array, total: Array, hops: Array, late: Array, stages: Array) -> Array:
        """F; the number of stages does not matter."""
        return self.least(peak, total, hops, late, 0)

    def least(self, peak: Array, total: Array, hops: Array, late: Array, most_stages: int) -> Array:
        """The same as ``value``."""
        value: Array = (self.rounds - 1) * peak + total + hops + late
        return value


@dataclass(frozen=True, slots=True)
class _Entry:
    """One stage that could be built, and its variable."""

    position: int
    stage: StageChoice
    time: float
    pace: float
    late: float
    variable: Any


def assign_by_milp(tables: AssignmentTables, objective: StableAndLate) -> tuple[float, tuple[StageChoice, ...]] | None:
    """The least objective and its stages, first one first; None when the program is infeasible."""
    model = mathopt.Model()
    entries = _entries(model, tables)
    if not entries:
        return None
    costs = [entry.time * entry.variable for entry in entries]
    _add_path(model, tables, entries)
    _add_units(model, tables, entries)
    peak, late = _add_peak_and_late(model, entries, objective)
    hops = _add_hops(model, tables, entries)
    _add_mixed_paces(model, tables, entries, peak, hops)
    costs += [hop * variable for pairs in hops.values() for hop, variable in pairs]
    model.minimize(mathopt.fast_sum([*costs, float(objective.rounds - 1) * peak, late]))
    result = mathopt.solve(model, mathopt.SolverType.HIGHS, params=highs_parameters(0.0, 60.0))
    if result.termination.reason != mathopt.TerminationReason.OPTIMAL:
        return None
    chosen = [entry for entry in entries if result.variable_values(entry.variable) > 0.5]
    chosen.sort(key=lambda entry: entry.stage.start)
    return result.objective_value(), tuple(entry.stage for entry in chosen)


def _entries(model: mathopt.Model, tables: AssignmentTables) -> list[_Entry]:
    """A binary variable for every stage of every position that fits."""
    found = []
    for position in range(1, tables.stage_limit() + 1):
        row = tables.position(position)
        for start, column in np.argwhere(tables.span_class >= 0).tolist():
            if start == 0 and position < tables.fewest_stages:
                continue
            span = int(tables.span_class[start, column])
            for option, policy in np.argwhere(np.isfinite(tables.time[:, :, row, span])).tolist():
                at = option, policy, row, span
                time, pace, late = (float(table[at]) for table in (tables.time, tables.pace, tables.late))
                stage = StageChoice(start, column + 1, option, policy)
                found.append(_Entry(position, stage, time, pace, late, model.add_binary_variable()))
    return found


def _add_path(model: mathopt.Model, tables: AssignmentTables, entries: list[_Entry]) -> None:
    starts, stops = defaultdict(list), defaultdict(list)
    for entry in entries:
        starts[entry.position, entry.stage.start].append(entry.variable)
        stops[entry.position, entry.stage.start + entry.stage.count].append(entry.variable)
    for item in range(1, tables.num_items + 1):
        wanted = 1 if item == tables.num_items else 0
        model.add_linear_constraint(mathopt.fast_sum(stops[1, item]) == wanted) if stops[1, item] else _impossible(
            model, wanted
        )
    last = max(entry.position for entry in entries)
    for position in range(1, last + 1):
        for item in range(1, tables.num_items):
            here, front = starts[position, item], stops[position + 1, item]
            if here or front:
                model.add_linear_constraint(mathopt.fast_sum(here) - mathopt.fast_sum(front) == 0)


def _impossible(model: mathopt.Model, wanted: int) -> None:
    """No stage can end the line: a constraint that nothing satisfies."""
    if wanted:
        model.add_linear_constraint(model.add_variable(lb=0.0, ub=0.0) >= 1)


def _add_units(model: mathopt.Model, tables: AssignmentTables, entries: list[_Entry]) -> None:
    for pool, units in enumerate(tables.pool_units.tolist()):
        here = [
            int(tables.option_units[entry.stage.option]) * entry.variable
            for entry in entries
            if tables.option_pool[entry.stage.option] == pool
        ]
        if here:
            model.add_linear_constraint(mathopt.fast_sum(here) <= units)


def _add_peak_and_late(model: mathopt.Model, entries: list[_Entry], objective: StableAndLate) -> tuple[Any, Any]:
    """Returns the variables of the peak and of the late work."""
    peak = model.add_variable(lb=0.0)
    late = model.add_variable(lb=0.0)
    for position in {entry.position for entry in entries}:
        here = [entry for entry in entries if entry.position == position]
        front = [entry for entry in entries if entry.position > position]
        model.add_linear_constraint(peak - mathopt.fast_sum([entry.pace * entry.variable for entry in here]) >= 0)
        own = mathopt.fast_sum([entry.late * entry.variable for entry in here])
        hidden = mathopt.fast_sum([objective.hides * entry.time * entry.variable for entry in front])
        model.add_linear_constraint(late - own + hidden >= 0)
    return peak, late


def _add_mixed_paces(
    model: mathopt.Model,
    tables: AssignmentTables,
    entries: list[_Entry],
    peak: Any,
    hops: dict[int, list[tuple[float, Any]]],
) -> None:
    if tables.pace_mix is None:
        return
    # No peak is above this: it switches a constraint off where no stage has the position.
    enough = float(tables.pace_mix.sum(axis=1).max()) * (
        sum(max(entry.time for entry in entries) for _ in range(tables.num_items))
        + tables.num_items * float(tables.hop.max(initial=0.0))
    )
    for position in {entry.position for entry in entries}:
        own, of_times, of_hops = tables.pace_mix[tables.position(position)].tolist()
        here = [entry for entry in entries if entry.position == position]
        behind = [entry for entry in entries if entry.position < position]
        terms = [(own * entry.time + enough) * entry.variable for entry in here]
        terms += [of_times * entry.time * entry.variable for entry in behind]
        terms += [of_hops * hop * variable for at, pairs in hops.items() if at < position for hop, variable in pairs]
        model.add_linear_constraint(peak + enough - mathopt.fast_sum(terms) >= 0)


def _add_hops(
    model: mathopt.Model, tables: AssignmentTables, entries: list[_Entry]
) -> dict[int, list[tuple[float, Any]]]:
    """Returns the hops in front of each position: what each takes, and its variable."""
    found: dict[int, list[tuple[float, Any]]] = defaultdict(list)
    on = defaultdict(list)
    for entry in entries:
        on[entry.position, entry.stage.option].append(entry.variable)
    last = max(entry.position for entry in entries)
    for position in range(1, last):
        for first, second in np.argwhere(tables.hop > 0).tolist():
            front, behind = on[position + 1, first], on[position, second]
            if front and behind:
                hop = model.add_variable(lb=0.0)
                model.add_linear_constraint(hop - mathopt.fast_sum(front) - mathopt.fast_sum(behind) >= -1)
                found[position].append((float(tables.hop[first, second]), hop))
    return found
