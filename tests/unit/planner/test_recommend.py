"""The recommended plan is the surest and simplest of those near the fastest one: real searches."""

from __future__ import annotations

from functools import cache

import pytest

from planner.answers.explain.why import explain
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.plan.recommendation import recommendation_sentence
from planner.question.problem import Constraints, Objective, Preference, Problem, Workload
from planner.search.device_counts import slowest_allowed_s
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.recheck import recheck_plan
from planner.search.recommend import BAND, SURE
from profiles.catalogue import load_cluster
from solver.check import CheckFailed


def question(backend: str, prefer: Preference = "recommended", max_step_time_s: float | None = None) -> Problem:
    return Problem(
        model=load_model("llama-3.1-70b"),
        cluster=load_cluster("dgx-h100", 64),
        workload=Workload(global_batch_size=1024, sequence_length=8192),
        constraints=Constraints(backends=(backend,), max_step_time_s=max_step_time_s),
        objective=Objective(prefer=prefer),
    )


@cache
def planned(backend: str, prefer: Preference = "recommended") -> Plan:
    return find_plan(question(backend, prefer), SearchOptions(top_k=3))


def test_deepspeed_gets_neither_offload_nor_context_parallelism() -> None:
    plan, fastest = planned("deepspeed"), planned("deepspeed").fastest
    assert fastest is not None
    assert not fastest.is_recommended
    assert "optimizer offload" in fastest.mechanisms
    assert (plan.strategy["optimizer_offload"], plan.strategy["cp"]) == (False, 1)
    assert plan.fits_probability is not None
    assert plan.fits_probability >= SURE > fastest.fits_probability
    assert 0 < fastest.slower_by <= BAND
    assert set(fastest.plan_mechanisms) < set(fastest.mechanisms)


@pytest.mark.parametrize("backend", ["deepspeed", "megatron"])
def test_the_fastest_beside_it_is_what_is_found_where_the_fastest_is_preferred(backend: str) -> None:
    plan, alone = planned(backend), planned(backend, "fastest")
    fastest = plan.fastest
    assert fastest is not None
    assert (fastest.step_time_s, fastest.strategy) == (alone.step_time_s, alone.strategy)
    assert (fastest.peak_memory_bytes, fastest.fits_probability) == (alone.peak_memory_bytes, alone.fits_probability)
    assert (alone.fastest, alone.status, alone.outcome) == (None, "optimal", "optimal")
    assert (plan.status, plan.outcome, plan.is_final) == ("feasible", "recommended", True)
    assert plan.lower_bound_s == alone.step_time_s
    assert plan.gap == pytest.approx(1 - alone.step_time_s / plan.step_time_s)


def test_asking_for_the_fastest_is_the_question_of_before() -> None:
    problem = question("deepspeed", "fastest")
    assert problem == problem.model_copy(update={"objective": Objective()})
    assert "prefer" not in problem.model_dump(mode="json")["objective"]
    assert "fastest" not in planned("deepspeed", "fastest").model_dump(mode="json")


@pytest.mark.parametrize(
    ("backend", "simpler"), [("deepspeed", "no optimizer offload"), ("megatron", "no uneven layers")]
)
def test_the_price_is_told_in_words(backend: str, simpler: str) -> None:
    plan = planned(backend)
    fastest = plan.fastest
    assert fastest is not None
    words = fastest.price.split(", ")
    assert words[0] == f"{100 * fastest.slower_by:.1f} % slower on paper"
    room_gib = (fastest.peak_memory_bytes - plan.peak_memory_bytes) / 2**30
    assert words[1] == f"{room_gib:.1f} GiB more room"
    assert simpler in words
    assert fastest.price in recommendation_sentence(plan)
    assert recommendation_sentence(plan) in explain(plan, with_neighbours=False).sentences


def test_a_target_is_held() -> None:
    """The recommended plan takes 164 s; who allows 162.5 s gets another one."""
    problem = question("deepspeed", max_step_time_s=162.5)
    plan = find_plan(problem, SearchOptions(top_k=0))
    assert planned("deepspeed").step_time_s > 162.5 >= plan.step_time_s
    assert plan.step_time_s <= slowest_allowed_s(problem)


def test_where_the_fastest_is_recommended_one_line_says_so() -> None:
    small = {
        "model": load_model("llama-3.1-8b"),
        "cluster": load_cluster("dgx-a100-80g", 16),
        "workload": Workload(global_batch_size=64, sequence_length=4096),
    }
    plan = find_plan(question("deepspeed").model_copy(update=small), SearchOptions(top_k=0))
    fastest = plan.fastest
    assert fastest is not None
    assert (fastest.is_recommended, fastest.price, fastest.slower_by) == (True, "", 0)
    assert (plan.status, plan.outcome, plan.gap) == ("optimal", "optimal", 0)
    assert recommendation_sentence(plan).startswith("The fastest plan is also the recommended plan")


def test_a_plan_beside_the_fastest_is_checked_again() -> None:
    plan = planned("deepspeed")
    fastest = plan.fastest
    assert fastest is not None
    recheck_plan(plan, plan.problem)
    slow = fastest.model_copy(update={"step_time_s": plan.step_time_s / 1.1, "slower_by": 0.1})
    with pytest.raises(CheckFailed, match="within the band"):
        recheck_plan(plan.model_copy(update={"fastest": slow}), plan.problem)
    with pytest.raises(CheckFailed, match="the recommended plan is asked"):
        recheck_plan(plan.model_copy(update={"fastest": None}), plan.problem)
    with pytest.raises(CheckFailed, match="optimal"):
        recheck_plan(plan.model_copy(update={"status": "optimal"}), plan.problem)
