"""Native plans before torch itself: groups, DTensor, FSDP2 and schedules at full world size, without a process each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.emitted_configs import folder_of
from planner.backends.checking.worker import Worker
from planner.backends.native.validator import VALIDATOR
from planner.errors import ValidatorUnavailable
from planner.model.load import load_model
from planner.question.problem import Constraints, Problem, Workload
from planner.search.sample import random_plans
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.validators import SharedWorkers

emit = emitter("native")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def torch_worker(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("torch")


def request_of(strategy: Strategy, **changes: Any) -> dict[str, Any]:
    """What the validator is asked about a plan, with fields of the plan's strategy changed afterwards."""
    layers = 8 // strategy.num_chunks
    made = dict(
        VALIDATOR.request(
            folder_of(emit(make_plan(strategy, layers_per_chunk=[layers] * strategy.num_chunks), "torchrun"))
        )
    )
    plan = json.loads(made["plan"])
    plan["strategy"].update(changes)
    return {**made, "plan": json.dumps(plan)}


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(tp=2, sp=True, dp_shard=256, dp_replicate=2, num_microbatches=2, zero_stage=3),
        Strategy(
            tp=4, sp=True, pp=4, vpp=2, dp_shard=64, num_microbatches=8, schedule="zbv", overlap_grad_reduce=False
        ),
        Strategy(pp=2, dp_shard=4, num_microbatches=4, overlap_grad_reduce=False),
        Strategy(pp=4, dp_shard=4, num_microbatches=6, schedule="zb_h1", overlap_grad_reduce=False),
        Strategy(cp=4, cp_kind="ring", dp_shard=2, num_microbatches=4),
    ],
)
def test_torch_accepts_what_the_rules_accept(torch_worker: Worker, strategy: Strategy) -> None:
    verdict = torch_worker.ask(request_of(strategy))
    assert verdict.accepted, verdict.message
    assert verdict.facts["chunks_of_rank_0"] == strategy.vpp


def test_another_number_of_ranks_is_refused(torch_worker: Worker) -> None:
    verdict = torch_worker.ask({**request_of(Strategy(dp_shard=8)), "world_size": 16})
    assert (verdict.accepted, verdict.stage) == (False, "world")
    assert "8 ranks" in verdict.message


def test_a_schedule_that_the_trainer_cannot_run_is_refused(torch_worker: Worker) -> None:
    strategy = Strategy(pp=2, dp_shard=4, num_microbatches=5, overlap_grad_reduce=False)
    verdict = torch_worker.ask(request_of(strategy, schedule="zb_h1"))
    assert (verdict.accepted, verdict.stage) == (False, "rules")


def test_a_broken_plan_is_refused(torch_worker: Worker) -> None:
    verdict = torch_worker.ask({"plan": "{", "world_size": 8})
    assert (verdict.accepted, verdict.stage) == (False, "plan")


def test_random_plans_are_accepted(torch_worker: Worker) -> None:
    asked = 0
    for name in ("llama-3.1-8b", "mixtral-8x7b"):
        problem = Problem(
            model=load_model(name),
            cluster=load_cluster("dgx-h100", 64),
            workload=Workload(global_batch_size=128, sequence_length=4096),
            constraints=Constraints(backends=("native",)),
        )
        for plan in list(random_plans(problem, 3, 40))[:12]:
            verdict = torch_worker.ask(VALIDATOR.request(folder_of(emit(plan, "torchrun"))))
            assert verdict.accepted, (plan.strategy, verdict.stage, verdict.message)
            asked += 1
    assert asked >= 12


def test_another_torch_is_not_pretended() -> None:
    with Worker(VALIDATOR, "2.1.0") as worker, pytest.raises(ValidatorUnavailable, match=r"which is 2\.13\.0"):
        worker.ask({})
