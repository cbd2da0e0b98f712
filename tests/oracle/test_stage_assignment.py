"""``assign`` is exact: against every assignment of hundreds of random small tables, and against a MILP."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import solver.stage_assignment.assign as assign_module
import solver.stage_assignment.labels as labels_module
import solver.stage_assignment.rest as rest_module
import solver.stage_assignment.stage_count as stage_count_module
import tests.assignment_by_milp as milp_module
from solver.check import CheckFailed
from solver.stage_assignment.assign import assign, relaxed_value, search_below
from solver.stage_assignment.evaluate import check_assignment
from solver.stage_assignment.stage_count import with_fewer_stages
from solver.stage_assignment.tables import AssignmentTables
from tests.assignment_by_milp import StableAndLate, assign_by_milp
from tests.assignment_tables import every_assignment, mist_value, paced, random_tables


@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("block", range(6))
def test_it_finds_the_best_of_all_assignments(block: int, by_position: bool) -> None:
    feasible = 0
    for seed in range(block * 50, block * 50 + 50):
        tables = paced(random_tables(seed), seed) if by_position else random_tables(seed)
        rounds, hides, consecutive = (1, 2, 8)[seed % 3], (1.0, 0.0, 0.5)[seed % 7 % 3], seed % 5 == 0
        best = min(
            (mist_value(tables, s, rounds, hides) for s in every_assignment(tables, consecutive=consecutive)),
            default=float("inf"),
        )
        answer = assign(tables, StableAndLate(rounds, hides), consecutive=consecutive)
        if best == float("inf"):
            assert answer is None, seed
            continue
        feasible += 1
        assert answer is not None, seed
        assert answer.value.value == pytest.approx(best, rel=1e-9), seed
        assert answer.bound == pytest.approx(best, rel=1e-9), seed
    assert feasible > 10


@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("block", range(3))
def test_it_agrees_with_a_mixed_integer_program(block: int, by_position: bool) -> None:
    feasible = 0
    for seed in range(1000 + block * 20, 1020 + block * 20):
        tables = random_tables(seed, most_items=9)
        tables = paced(tables, seed) if by_position else tables
        objective = StableAndLate((1, 2, 8)[seed % 3], (1.0, 0.0, 0.5)[seed % 7 % 3])
        answer, program = assign(tables, objective), assign_by_milp(tables, objective)
        assert (answer is None) == (program is None), seed
        if answer is None or program is None:
            continue
        feasible += 1
        assert answer.value.value == pytest.approx(program[0], rel=1e-6), seed
        assert mist_value(tables, program[1], objective.rounds, objective.hides) == pytest.approx(program[0], rel=1e-6)
    assert feasible > 5


def test_the_relaxed_value_is_a_bound() -> None:
    for seed in range(60):
        tables, objective = random_tables(seed), StableAndLate(4)
        for each in (tables, paced(tables, seed)):
            answer = assign(each, objective)
            bound, _ = relaxed_value(each, objective)
            assert answer is None or bound <= answer.value.value * (1 + 1e-12), seed


def test_a_cutoff_below_the_optimum_leaves_nothing() -> None:
    tables, objective = _feasible()
    best = assign(tables, objective)
    assert best is not None
    assert assign(tables, objective, cutoff=best.value.value) is None
    again = assign(tables, objective, cutoff=best.value.value * 1.0001)
    assert again is not None
    assert again.value.value == best.value.value


def test_a_spent_time_limit_leaves_a_bound_below_the_answer() -> None:
    tables, objective = _feasible()
    best = assign(tables, objective)
    cut_short = assign(tables, objective, time_limit_s=0.0)
    assert best is not None
    assert cut_short is None or cut_short.bound <= best.value.value <= cut_short.value.value


def test_a_spent_number_of_labels_leaves_a_bound_below_the_optimum() -> None:
    stopped = 0
    for seed in range(100):
        tables, objective = paced(random_tables(seed), seed), StableAndLate((2, 8)[seed % 2])
        best = assign(tables, objective)
        if best is None:
            continue
        for limit in (0, 3, 10, 40):
            searched = search_below(tables, objective, grown_limit=limit, dives=seed % 3 > 0)
            assert searched.bound <= best.value.value * (1 + 1e-12), (seed, limit)
            assert searched.complete == (searched.bound >= best.value.value * (1 - 1e-9)), (seed, limit)
            assert search_below(tables, objective, grown_limit=limit, dives=seed % 3 > 0) == searched
            stopped += not searched.complete
    assert stopped > 50


def test_no_assignment_below_a_cutoff_has_more_stages_than_it_leaves() -> None:
    fewer_than_before = 0
    for seed in range(300):
        tables, rounds = paced(random_tables(seed), seed), (1, 2, 4)[seed % 3]
        # Every stage costs something beside its items, or many stages would be as good as few.
        tables = replace(tables, time=tables.time + 3.0)
        values = [(mist_value(tables, stages, rounds, 1.0), len(stages)) for stages in every_assignment(tables)]
        feasible = [value for value, _ in values if value < float("inf")]
        for cutoff in (np.quantile(feasible, part) * 1.001 for part in (0.0, 0.02, 0.2) if feasible):
            most = max(count for value, count in values if value < cutoff)
            fewer = with_fewer_stages(tables, StableAndLate(rounds), cutoff)
            assert fewer is not None, seed
            assert fewer.most_stages >= most, seed
            fewer_than_before += fewer.most_stages < tables.stage_limit()
    assert fewer_than_before > 20


def test_nothing_is_found_below_a_proved_cutoff() -> None:
    for seed in range(100):
        tables, objective = paced(random_tables(seed), seed), StableAndLate(4)
        best = assign(tables, objective)
        if best is None:
            continue
        for part in (0.7, 0.95, 1.0):
            searched = search_below(tables, objective, cutoff=part * best.value.value, dives=False)
            assert searched.complete
            assert searched.found is None
            assert searched.bound == part * best.value.value
        above = search_below(tables, objective, cutoff=1.01 * best.value.value, dives=False)
        assert above.bound == pytest.approx(best.value.value, rel=1e-9)


def test_the_checker_refuses_a_wrong_claim() -> None:
    tables, objective = _feasible()
    best = assign(tables, objective)
    assert best is not None
    check_assignment(tables, best, objective)
    too_good = replace(best, value=replace(best.value, value=best.value.value * 0.99))
    too_few = replace(best, stages=best.stages[1:])
    bound_above = replace(best, bound=best.value.value * 1.01)
    crowded = replace(tables, pool_units=tables.pool_units * 0)
    for wrong in (too_good, too_few, bound_above):
        with pytest.raises(CheckFailed):
            check_assignment(tables, wrong, objective)
    with pytest.raises(CheckFailed, match="units"):
        check_assignment(crowded, best, objective)


def _feasible() -> tuple[AssignmentTables, StableAndLate]:
    """Some problem with an answer of several stages."""
    objective = StableAndLate(4)
    for seed in range(100):
        tables = random_tables(seed)
        answer = assign(tables, objective)
        if answer is not None and len(answer.stages) > 1:
            return tables, objective
    raise AssertionError("no random problem had an answer of several stages")


def test_the_mathematics_names_functions_that_exist() -> None:
    modules = {
        "assign": assign_module,
        "labels": labels_module,
        "rest": rest_module,
        "stage_count": stage_count_module,
    }
    text = assign_module.__doc__ or ""
    names = re.findall(r"``((?:labels\.|rest\.|stage_count\.|_)\w+|assign)``", text)
    assert {"labels.grow", "_ends", "_reopened"} <= set(names)
    for name in names:
        module, _, function = name.rpartition(".")
        assert hasattr(modules[module or "assign"], function), name
    program = milp_module.__doc__ or ""
    for name in re.findall(r"``(_\w+)``", program):
        assert hasattr(milp_module, name), name
