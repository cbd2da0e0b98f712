"""The counts of a search add up: every enumerated strategy is solved or pruned for one reason."""

from __future__ import annotations

import pytest

from planner.errors import MeshwrightError
from planner.question.problem import Constraints
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.search_problems import random_problem


@pytest.mark.parametrize("seed", range(10))
def test_solved_and_pruned_make_all(seed: int) -> None:
    problem = random_problem(seed)
    try:
        report = find_plan(problem, SearchOptions(top_k=seed % 4)).search
    except MeshwrightError:
        return
    assert report.evaluated + sum(report.pruned.values()) == report.enumerated
    assert all(count > 0 for count in (*report.pruned.values(), *report.refused.values()))


@pytest.mark.slow
@pytest.mark.parametrize("backends", [("megatron",), ("native",), ("deepspeed",), ("native", "torchtitan")])
def test_it_holds_without_pins_and_over_several_back_ends(backends: tuple[str, ...]) -> None:
    plans = 0
    for seed in range(30, 34):
        problem = random_problem(seed).model_copy(update={"constraints": Constraints(backends=backends)})
        try:
            report = find_plan(problem).search
        except MeshwrightError:
            continue
        plans += 1
        assert report.evaluated + sum(report.pruned.values()) == report.enumerated
    assert plans > 0


def test_an_early_stop_says_what_was_not_examined() -> None:
    for seed in range(200):
        try:
            plan = find_plan(random_problem(seed), SearchOptions(time_limit_s=0.02))
        except MeshwrightError:
            continue
        report = plan.search
        assert report.evaluated + sum(report.pruned.values()) == report.enumerated
        if "stopped early" in report.proof:
            assert plan.status == "feasible"
            assert report.pruned["not examined before the time ran out"] > 0
            return
    pytest.fail("no search was stopped early")
