"""Every plan of the search passes the recheck; a plan with one number changed does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.errors import NoFeasiblePlan
from planner.model.builtin import builtin_model
from planner.plan.plan import Plan
from planner.question.problem import UNRESTRICTED, Constraints, Objective, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.recheck import OF_THE_SEARCH, recheck_plan
from solver.check import CheckFailed
from tests.plan_factory import make_cluster
from tests.sampling import drawn
from tests.search_problems import Size, random_problem


@pytest.mark.parametrize("seed", drawn(range(40), 12))
def test_what_the_search_finds_is_what_it_claims(seed: int) -> None:
    problem = random_problem(seed, Size(max_devices=6, max_layers=5, max_batch=8))
    try:
        plan = find_plan(problem, SearchOptions(top_k=1))
    except NoFeasiblePlan:
        return
    # As it comes from another process.
    recheck_plan(Plan.model_validate_json(plan.canonical_json()), problem)


@pytest.fixture(scope="module")
def question() -> Problem:
    """A problem whose plan has a pipeline, tensor parallelism and recompute, so that every field says something."""
    return Problem(
        model=builtin_model("llama-3.1-70b"),
        cluster=make_cluster(32),
        workload=Workload(global_batch_size=128, sequence_length=32768),
        constraints=Constraints(
            backends=(UNRESTRICTED,), pins={"tp": 4, "pp": 4, "cp": 1, "recompute": "full", "zero_stage": 1}
        ),
    )


@pytest.fixture(scope="module")
def found(question: Problem) -> Plan:
    return find_plan(question, SearchOptions(top_k=0))


def places(data: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all numbers."""
    if isinstance(data, dict):
        return [path for name in data for path in places(data[name], (*where, name))]
    if isinstance(data, list):
        return [path for index, item in enumerate(data) for path in places(item, (*where, index))]
    return [where] if isinstance(data, int | float) and not isinstance(data, bool) else []


def changed(plan: Plan, path: tuple[Any, ...], factor: float) -> Plan | None:
    """The plan with one number made larger by ``factor``; None where that is no plan any more."""
    data = json.loads(plan.canonical_json())
    part = data
    for name in path[:-1]:
        part = part[name]
    value = part[path[-1]]
    part[path[-1]] = value + max(2, round(value * factor)) if isinstance(value, int) else value * (1 + factor) + factor
    try:
        return Plan.model_validate(data)
    except ValueError:
        return None


NO_EFFECT = ("problem", "workload", "images_per_sample")
"""A model without a tower has no images: a plan that is read leaves them out."""


def test_no_number_of_a_plan_can_be_changed_unseen(found: Plan, question: Problem) -> None:
    recheck_plan(found, question)
    assert any(stage.recompute.num_layers_per_chunk for stage in found.stages)
    paths = [path for path in places(json.loads(found.canonical_json())) if path[0] not in OF_THE_SEARCH]
    # Of the stages the first stands for all.
    paths = [path for path in paths if path[0] != "stages" or path[1] == 0]
    assert len(paths) > 60
    unseen = []
    for path in paths:
        plan = changed(found, path, 0.01)
        if plan is None or path[0] == "schema_version" or path == NO_EFFECT:
            continue
        try:
            recheck_plan(plan, question)
        except CheckFailed:
            continue
        unseen.append(path)
    assert unseen == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lower_bound_s": 1e9}, "lower bound"),
        ({"lower_bound_s": -1.0}, "lower bound"),
        ({"status": "infeasible"}, "infeasible"),
        ({"gap": 0.5}, "gap"),
    ],
)
def test_a_bound_that_is_none_is_refused(found: Plan, question: Problem, change: dict[str, Any], says: str) -> None:
    with pytest.raises(CheckFailed, match=says):
        recheck_plan(found.model_copy(update=change), question)


def test_an_unproved_plan_may_not_be_called_optimal(found: Plan, question: Problem) -> None:
    half = found.step_time_s / 2
    unproved = found.model_copy(update={"lower_bound_s": half, "gap": 0.5, "status": "feasible"})
    recheck_plan(unproved, question)
    with pytest.raises(CheckFailed, match="optimal"):
        recheck_plan(unproved.model_copy(update={"status": "optimal"}), question)


def test_an_answer_to_another_question_is_refused(found: Plan, question: Problem) -> None:
    other = question.model_copy(update={"workload": Workload(global_batch_size=64, sequence_length=32768)})
    with pytest.raises(CheckFailed, match="another problem"):
        recheck_plan(found, other)
    with pytest.raises(CheckFailed, match="another problem"):
        recheck_plan(found, question.model_copy(update={"cluster": make_cluster(64)}))


def test_fewer_devices_are_an_answer_where_cost_is_minimised() -> None:
    problem = Problem(
        model=builtin_model("llama-3.1-8b"),
        cluster=make_cluster(16),
        workload=Workload(global_batch_size=16, sequence_length=2048),
        objective=Objective(minimize="cost", price_per_device_hour=2.0),
        constraints=Constraints(backends=(UNRESTRICTED,), pins={"tp": 1, "cp": 1, "micro_batch_size": 1}),
    )
    plan = find_plan(problem, SearchOptions(top_k=0))
    recheck_plan(plan, problem)


def test_a_plan_that_breaks_a_pin_or_a_limit_is_refused(found: Plan, question: Problem) -> None:
    for constraints, says in (
        (Constraints(backends=(UNRESTRICTED,), pins={"tp": 8}), "tp is 4, pinned to 8"),
        (Constraints(backends=(UNRESTRICTED,), forbids=("recompute",)), "pinned to none"),
        (Constraints(backends=(UNRESTRICTED,), max_step_time_s=found.step_time_s / 2), "are allowed"),
        (Constraints(backends=(UNRESTRICTED,), memory_margin_fraction=0.9), "bytes of"),
    ):
        asked = question.model_copy(update={"constraints": constraints})
        with pytest.raises(CheckFailed, match=says):
            recheck_plan(found.model_copy(update={"problem": asked}), asked)


def test_a_search_that_is_told_to_stop_keeps_its_best_plan(question: Problem) -> None:
    asked = question.model_copy(update={"constraints": Constraints(backends=(UNRESTRICTED,))})
    incumbents: list[float] = []
    options = SearchOptions(top_k=0, stop=lambda: bool(incumbents))
    plan = find_plan(asked, options, lambda state: incumbents.append(state.incumbent_s) if state.incumbent_s else None)
    assert plan.status == "feasible"
    assert plan.bound is not None
    assert plan.bound.step_time_s < plan.step_time_s
    recheck_plan(plan, asked)
