"""``partition`` and ``assign`` against CP-SAT, which has the same mathematics as tables of permitted rows.

All costs are whole numbers, so that CP-SAT proves the very optimum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ortools.sat.python import cp_model

from solver.arrays import Array
from solver.stage_assignment.assign import assign
from solver.stage_assignment.tables import AssignmentTables
from solver.stage_partition import PartitionTables, partition
from tests.assignment_by_milp import StableAndLate
from tests.assignment_tables import random_tables
from tests.sampling import drawn

FACTORS = (2, 7, 1, 3)
"""Of the sum, the peak, the two tails."""
MOST = 10**6


def weighted(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
    """An objective that is linear in all of them."""
    a, b, c, d = FACTORS
    value: Array = a * total + b * peak + c * tail1 + d * tail2
    return value


def line_of_items(seed: int) -> PartitionTables:
    """Twelve to sixteen items for four or five stages, every fifth entry forbidden."""
    draw = np.random.default_rng(seed)
    stages, items, widest = int(draw.integers(4, 6)), int(draw.integers(12, 17)), 6
    shape = (stages, items + 1, widest)
    add, peak, tail1, tail2 = draw.integers(0, 60, (4, *shape)).astype(float)
    return PartitionTables(np.where(draw.random(shape) < 0.2, np.inf, add), peak, tail1, tail2, low=1)


def split_by_cp_sat(tables: PartitionTables) -> int | None:
    """The least ``weighted`` of all splits: a row for each permitted (start, stop) of a stage."""
    model, items = cp_model.CpModel(), tables.num_items
    edges = [model.new_int_var(0, items, "") for _ in range(tables.num_stages + 1)]
    model.add(edges[0] == 0)
    model.add(edges[-1] == items)
    added = []
    largest = [model.new_int_var(0, MOST, "") for _ in range(3)]
    for stage in range(tables.num_stages):
        columns = [model.new_int_var(0, MOST, "") for _ in range(4)]
        parts = (tables.add, tables.peak, tables.tail1, tables.tail2)
        rows = [
            (start, start + tables.low + column, *(int(part[stage, start, column]) for part in parts))
            for start, column in np.argwhere(np.isfinite(tables.add[stage])).tolist()
            if start + tables.low + column <= items
        ]
        model.add_allowed_assignments([edges[stage], edges[stage + 1], *columns], rows)
        added.append(columns[0])
        for most, one in zip(largest, columns[1:], strict=True):
            model.add(most >= one)
    model.minimize(FACTORS[0] * sum(added) + sum(f * most for f, most in zip(FACTORS[1:], largest, strict=True)))
    return least_of(model)


def least_of(model: cp_model.CpModel) -> int | None:
    """The proved optimum, on one thread; None where nothing is feasible."""
    engine = cp_model.CpSolver()
    engine.parameters.num_workers = 1
    engine.parameters.max_time_in_seconds = 60.0
    status = engine.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL, engine.status_name(status)
    return round(engine.objective_value)


def pools(seed: int) -> AssignmentTables:
    """Up to seven items over up to three unequal pools; whole costs, whatever the seed."""
    tables = random_tables(seed, most_items=7)
    time_s = np.where(np.isfinite(tables.time), np.ceil(10 * tables.time), np.inf)
    return replace(tables, time=time_s, late=np.floor(10 * tables.late), hop=np.floor(10 * tables.hop))


def assigned_by_cp_sat(tables: AssignmentTables, objective: StableAndLate) -> int | None:
    """The least objective: a slot for each position from the end, an unused one is a row of noughts.

    ``late`` and ``hides`` are whole here.
    """
    model, slots, none = cp_model.CpModel(), tables.stage_limit(), tables.num_options
    if slots < tables.fewest_stages:
        return None
    names = ("start", "stop", "option", "time", "late", "used")
    of = {name: [model.new_int_var(0, MOST, f"{name}{slot}") for slot in range(slots)] for name in names}
    in_pool = [[model.new_int_var(0, MOST, "") for _ in tables.pool_units] for _ in range(slots)]
    for slot in range(slots):
        rows = stage_rows(tables, slot + 1)
        if slot >= tables.fewest_stages:
            rows.append((0, 0, none, 0, 0, 0, *(0 for _ in tables.pool_units)))
        model.add_allowed_assignments([*(of[name][slot] for name in names), *in_pool[slot]], rows)
        model.add(of["stop"][slot] == (of["start"][slot - 1] if slot else tables.num_items))
    model.add(of["start"][-1] == 0)
    for pool, units in enumerate(tables.pool_units.tolist()):
        model.add(sum(each[pool] for each in in_pool) <= units)
    hops = []
    between = [(a, b, int(tables.hop[a, b])) for a in range(none) for b in range(none)]
    between += [(none, each, 0) for each in range(none + 1)]
    for slot in range(slots - 1):
        hops.append(model.new_int_var(0, MOST, ""))
        model.add_allowed_assignments([of["option"][slot + 1], of["option"][slot], hops[-1]], between)
    peak, late = model.new_int_var(0, MOST, ""), model.new_int_var(0, MOST, "")
    for slot in range(slots):
        model.add(peak >= of["time"][slot])
        model.add(late >= of["late"][slot] - int(objective.hides) * sum(of["time"][slot + 1 :]))
    model.minimize((objective.rounds - 1) * peak + sum(of["time"]) + sum(hops) + late)
    return least_of(model)


def stage_rows(tables: AssignmentTables, position: int) -> list[tuple[int, ...]]:
    """Every stage that may stand at this position: its items, option, costs and the units that it takes."""
    rows = []
    at, pools = tables.position(position), range(len(tables.pool_units))
    for start, column in np.argwhere(tables.span_class >= 0).tolist():
        if start == 0 and position < tables.fewest_stages:
            continue
        span = tables.span_class[start, column]
        for option, policy in np.argwhere(np.isfinite(tables.time[:, :, at, span])).tolist():
            costs = (int(table[option, policy, at, span]) for table in (tables.time, tables.late))
            units = (int(tables.option_units[option]) * (tables.option_pool[option] == pool) for pool in pools)
            rows.append((start, start + column + 1, option, *costs, 1, *map(int, units)))
    return rows


@pytest.mark.parametrize("seed", drawn(range(12), 4))
def test_a_split_of_layers_is_that_of_a_constraint_program(seed: int) -> None:
    tables = line_of_items(seed)
    mine, least = partition(tables, weighted), split_by_cp_sat(tables)
    assert (None if mine is None else mine.objective) == least


@pytest.mark.parametrize("seed", drawn(range(2000, 2024), 8))
def test_an_assignment_to_unequal_pools_is_that_of_a_constraint_program(seed: int) -> None:
    tables, objective = pools(seed), StableAndLate((1, 2, 8)[seed % 3], (1.0, 0.0)[seed % 2])
    mine, least = assign(tables, objective), assigned_by_cp_sat(tables, objective)
    assert (None if mine is None else round(mine.value.value, 6)) == least


def test_most_cases_have_an_answer() -> None:
    assert sum(partition(line_of_items(seed), weighted) is not None for seed in range(12)) >= 10
    assert sum(assign(pools(seed), StableAndLate(2)) is not None for seed in range(2000, 2024)) >= 8
