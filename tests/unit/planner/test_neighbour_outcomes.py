from __future__ import annotations

from typing import Any

import pytest

from planner.answers.explain.neighbours import SAME_TIME, neighbours
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.relief_layers import policies
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_model

STRATEGY = Strategy(tp=2, sp=True, dp_shard=4, num_microbatches=8, zero_stage=1)


@pytest.fixture
def problem() -> Problem:
    return Problem(
        model=make_model(),
        cluster=make_cluster(),
        workload=Workload(global_batch_size=STRATEGY.global_batch_size, sequence_length=2048),
    )


def test_the_pace_agrees_with_the_numbers(problem: Problem) -> None:
    found = neighbours(estimate(problem, STRATEGY))
    timed = [each for each in found if each.slower_by is not None and each.outcome != "does_not_fit"]
    assert {each.outcome for each in timed} >= {"faster", "slower"}
    for each in timed:
        assert each.slower_by is not None
        expected = "as_fast" if abs(each.slower_by) < SAME_TIME else "faster" if each.slower_by < 0 else "slower"
        assert each.outcome == expected


def test_a_relief_that_no_layer_needs_is_no_move(problem: Problem) -> None:
    plan = estimate(problem, STRATEGY)
    assert plan.status != "infeasible"
    told = {each.move for each in neighbours(plan)}
    same_software = problem.model_copy(update={"constraints": Constraints(backends=(plan.backend,))})
    for move in ("recompute none -> full-where-needed", "activation_offload false -> where-needed"):
        changed = Strategy(**{**_fields(STRATEGY), **policies({move.split()[0]: move.split()[-1]})})
        other = estimate(same_software, changed, relief="where_needed")
        same = (other.step_time_s, other.peak_memory_bytes) == (plan.step_time_s, plan.peak_memory_bytes)
        assert (move in told) != same


def test_a_forbidden_axis_is_named(problem: Problem) -> None:
    constraints = Constraints(forbids=("cp",), pins={"zero": 1})
    plan: Plan = estimate(problem.model_copy(update={"constraints": constraints}), STRATEGY)
    reasons = {each.move: each.reason for each in neighbours(plan)}
    assert reasons["cp 1 -> 2"] == "excluded by the pin or forbid of cp"
    assert reasons["zero_stage 1 -> 2"] == "excluded by the pin or forbid of zero_stage=1"
    assert reasons["tp 2 -> 4"] == ""


def _fields(strategy: Strategy) -> dict[str, Any]:
    return {key: value for key, value in strategy.to_dict().items() if key not in {"dp", "recompute_modules"}}
