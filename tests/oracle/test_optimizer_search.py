"""Exhaustive evaluation finds the same optimum under each optimizer, whose ends may keep more than its layers."""

from __future__ import annotations

from operator import itemgetter

import pytest

from planner.errors import NoFeasiblePlan
from planner.question.optimizers import OPTIMIZERS
from planner.question.problem import UNRESTRICTED, Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.optimal_search import assert_search_is_optimal
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=6, max_layers=5, max_batch=8, narrowings=2)
NAMES = ("muon", "adam_8bit", "adafactor", "lion")
SEEDS = 6
QUESTIONS = [(name, 2400 + number) for name in NAMES for number in range(SEEDS)]


def _problem(seed: int, optimizer: str) -> Problem:
    problem = random_problem(seed, SMALL, UNRESTRICTED)
    workload = problem.workload.model_copy(update={"optimizer": optimizer})
    return problem.model_copy(update={"workload": workload})


@pytest.mark.parametrize(("optimizer", "seed"), drawn(QUESTIONS, 2 * len(NAMES), kind=itemgetter(0)))
def test_the_plan_is_the_optimum(optimizer: str, seed: int) -> None:
    problem = _problem(seed, optimizer)
    assert_search_is_optimal(problem)


# About the questions of this file, not about the search: they change with the file.
@pytest.mark.thorough
def test_the_optimizer_decides_about_the_plan() -> None:
    """The comparison above would say nothing if plans were those of Adam."""
    changed = 0
    for seed in range(2400, 2400 + SEEDS):
        found: list[float | None] = []
        for name in ("adam", "muon", "adafactor"):
            try:
                plan = find_plan(_problem(seed, name), SearchOptions(top_k=0))
            except NoFeasiblePlan:
                found.append(None)
                continue
            found.append(plan.step_time_s)
        changed += len(set(found)) > 1
    assert changed >= SEEDS / 2
    assert set(NAMES) < set(OPTIMIZERS)
