from __future__ import annotations

from typing import Literal

import pytest

from planner.backends.emission.describe import plan_markdown, plan_strategy_words, strategy_words
from planner.backends.emission.emission import BackEndFiles, Emission
from planner.plan.plan import Plan
from planner.predict.physics.physics import TUNED
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_plan


def page(plan: Plan) -> str:
    written = BackEndFiles(files={}, script="", versions={}, version="0.19.2")
    emission = Emission(backend="megatron", plan=plan, written=written, files={}, launch_command="true")
    return plan_markdown(emission, TUNED)


def searched(status: Literal["optimal", "feasible"], bounded: int) -> Plan:
    plan = make_plan(Strategy(dp_shard=8, num_microbatches=2))
    search = plan.search.model_copy(update={"bounded": bounded, "proof": "nothing is faster"})
    return plan.model_copy(update={"status": status, "search": search})


def test_an_estimate_claims_no_bound() -> None:
    estimate = searched("feasible", 0).model_copy(update={"lower_bound_s": None, "gap": None})
    text = page(estimate)
    assert "no bound is known" in text
    assert "gap" not in text


@pytest.mark.parametrize(("status", "words"), [("optimal", "is proved best"), ("feasible", "not proved best")])
def test_a_search_says_what_it_proved(status: Literal["optimal", "feasible"], words: str) -> None:
    text = page(searched(status, 10))
    assert words in text
    assert "%. Nothing is faster." in text


def test_the_back_end_and_its_release_are_named() -> None:
    assert "megatron" in page(searched("optimal", 10)).lower()
    assert "0.19.2" in page(searched("optimal", 10))


def test_one_micro_batch_is_singular() -> None:
    assert "1 micro-batch of 2" in strategy_words(Strategy(micro_batch_size=2, num_microbatches=1))
    assert "2 micro-batches of 1" in strategy_words(Strategy(num_microbatches=2))


def test_a_policy_is_told_with_the_layers_that_it_is_for() -> None:
    strategy = Strategy(pp=2, num_microbatches=2, recompute="full", activation_offload=True)
    some, every = (make_plan(strategy, recompute_layers_per_chunk=layers) for layers in ((1, 4), (4, 4)))
    assert "recompute full-where-needed, activation offload where-needed" in plan_strategy_words(some)
    assert plan_strategy_words(every).endswith("recompute full, activation offload")
    constraints = some.problem.constraints.model_copy(update={"pins": {"recompute": "full-first-1"}})
    pinned = some.model_copy(update={"problem": some.problem.model_copy(update={"constraints": constraints})})
    assert "recompute full-first-1" in plan_strategy_words(pinned)


def test_what_is_sent_is_told_for_the_busiest_stage() -> None:
    text = page(make_plan(Strategy(tp=2, pp=2, dp_shard=2, num_microbatches=2)))
    assert "## What is sent" in text
    # Hidden states of 4096 tokens x 1024 features, one border, two micro-batches.
    assert "| pp | send_recv | 2 | 0 | 16.00 MiB | 2 | 8.00 MiB |" in text


def test_a_precision_without_a_rate_is_no_obstacle() -> None:
    workload = Workload(global_batch_size=4, sequence_length=4096, precision="fp8")
    plan = make_plan(Strategy(tp=2, num_microbatches=4), cluster=load_cluster("dgx-a100-80g", 8), workload=workload)
    assert "Not counted: a100-sxm4-80gb has no fp8 peak rate." in page(plan)


def test_a_single_device_sends_nothing() -> None:
    assert "What is sent" not in page(make_plan())
