"""Whether a strategy is a point of a back-end's space, and the right reason where it is not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.space_survey import FILES, OTHERS, RESULT, survey
from planner.model.load import load_model
from planner.question.problem import Constraints, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.sample import random_strategies
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.membership import membership
from tests.search_problems import random_problem

WORKLOAD = Workload(global_batch_size=64, sequence_length=4096)


def _problem(backend: str, model: str = "llama-3.1-8b", devices: int = 16) -> Problem:
    return Problem(
        model=load_model(model),
        cluster=load_cluster("dgx-h100", devices),
        workload=WORKLOAD,
        constraints=Constraints(backends=(backend,)),
    )


PLAIN = Strategy(tp=2, sp=True, pp=2, dp_shard=4, num_microbatches=16, overlap_tp=True)


@pytest.mark.parametrize("seed", range(8))
def test_what_the_search_enumerates_is_a_point(seed: int) -> None:
    problem = random_problem(seed, backend="unrestricted")
    problem = problem.model_copy(update={"constraints": Constraints(backends=("unrestricted",))})
    drawn = [strategy for _, strategy in zip(range(10), random_strategies(problem, seed), strict=False)]
    assert drawn
    assert all(membership(problem, strategy).reasons == () for strategy in drawn)


@pytest.mark.parametrize("backend", ["megatron", "deepspeed", "native", "torchtitan", "maxtext", "accelerate"])
def test_a_plan_is_a_point_of_its_space(backend: str) -> None:
    plan = find_plan(_problem(backend), SearchOptions(top_k=0, compare=False))
    assert membership(_problem(backend), plan.chosen()).reasons == ()


def test_a_switch_that_the_search_sets_is_named() -> None:
    assert membership(_problem("megatron"), PLAIN).differs_in == ()
    off = replace(PLAIN, overlap_grad_reduce=False)
    found = membership(_problem("megatron"), off)
    assert found.inside
    assert found.differs_in == ("overlap_grad_reduce",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dp_shard": 2}, "its degrees make 8 devices, not 16"),
        ({"num_microbatches": 15}, "batch"),
        ({"schedule": "gpipe"}, "no gpipe schedule"),
        ({"recompute": "selective", "recompute_modules": ("attention_core",)}, "attention_core alone frees nothing"),
        ({"recompute": "selective", "recompute_modules": ("norm",)}, "fuses the norm"),
        ({"pp": 2, "vpp": 16, "schedule": "interleaved", "microbatch_group_size": 6}, "group"),
    ],
)
def test_the_reason_why_a_strategy_is_outside(changes: dict[str, object], reason: str) -> None:
    found = membership(_problem("megatron"), replace(PLAIN, **changes))  # type: ignore[arg-type]
    assert not found.inside
    assert any(reason in each for each in found.reasons), found.reasons


def test_the_published_runs_of_this_repository_are_points() -> None:
    found = survey(FILES[:1])["backends"]
    assert all(each["points"] == each["runs"] for name, each in found.items() if name != OTHERS)
    assert found["megatron==23.04"]["points"] == 8, "what Korthikanti ran, sequence parallel and selective"


# A committed file that went stale is seen by the run that made it so, not by another.
@pytest.mark.budget(60)
@pytest.mark.slow
def test_the_survey_is_what_the_tables_say() -> None:
    if not all(path.exists() for path in FILES):
        pytest.skip("../shared/ground_truth is not here")
    assert survey(FILES) == json.loads(RESULT.read_text())
