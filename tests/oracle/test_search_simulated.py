"""The step time by which a plan is proved and shown is that of its schedule, run action by action."""

from __future__ import annotations

import random

import pytest

from planner.answers.views.step import step_view
from planner.errors import NoFeasiblePlan
from planner.plan.plan import Plan
from planner.plan.timeline import plan_timeline
from planner.question.problem import Constraints
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.sampling import drawn, runs_whole
from tests.search_problems import Size, random_problem

SIZE = Size(max_devices=8, max_layers=7, max_batch=16, narrowings=1)


def _plan(seed: int) -> Plan | None:
    problem = random_problem(seed, SIZE)
    draw = random.Random(seed)
    if draw.random() < 0.7:
        pins = dict(problem.constraints.pins) | {"pp": draw.choice([2, 4])}
        backends = problem.constraints.backends
        problem = problem.model_copy(update={"constraints": Constraints(backends=backends, pins=pins)})
    try:
        return find_plan(problem, SearchOptions(top_k=0))
    except NoFeasiblePlan:
        return None


def _check(plan: Plan) -> None:
    tail_s = plan.breakdown_s["dp"] + plan.breakdown_s["optimizer"]
    timeline = plan_timeline(plan)
    assert sum(plan.breakdown_s.values()) == pytest.approx(plan.step_time_s, rel=1e-9)
    assert timeline.makespan_s <= plan.step_time_s * (1 + 1e-9)
    assert timeline.makespan_s + tail_s >= plan.step_time_s * (1 - 1e-9)
    step = step_view(plan)
    assert (step.makespan_ns + step.after_ns) / 1e9 == pytest.approx(plan.step_time_s, rel=1e-9, abs=2e-9)
    for stage in plan.stages:
        assert sum(stage.chunk_forward_s) == pytest.approx(stage.forward_s, rel=1e-9)
        assert sum(stage.chunk_backward_s) == pytest.approx(stage.backward_s, rel=1e-9)


def test_the_headline_is_the_simulated_step() -> None:
    # The last one shards its experts over the tensor-parallel ranks and has no other data parallelism.
    plans = [plan for seed in (*drawn(range(40), 16), 1035) if (plan := _plan(seed)) is not None]
    if runs_whole():
        assert len(plans) >= 15
        assert sum(plan.strategy["pp"] > 1 for plan in plans) >= 10
    for plan in plans:
        _check(plan)


@pytest.mark.slow
def test_the_headline_is_the_simulated_step_for_many_questions() -> None:
    # The kept one shards its experts over the tensor-parallel ranks and has no other data parallelism.
    seeds = drawn(range(1000, 1400), 12, kept=(1035,))
    plans = [plan for seed in seeds if (plan := _plan(seed)) is not None]
    if runs_whole():
        assert len(plans) >= 200
    for plan in plans:
        _check(plan)
