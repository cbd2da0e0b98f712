"""The ladder of cheap measurements under a plan of many devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from planner.answers.explain.trust_ladder import LARGE, Rung, shortened_model, trust_ladder
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

DENSE = Strategy(
    tp=8, sp=True, cp=2, cp_kind="ring", pp=16, vpp=2, dp_shard=4, num_microbatches=128, schedule="interleaved",
    microbatch_group_size=16, zero_stage=1,
)  # fmt: skip
EXPERTS = Strategy(ep=64, pp=16, dp_shard=64, num_microbatches=64, zero_stage=1, recompute="full")
QUESTIONS = {
    "dense": ("llama-3.1-405b", "dgx-h100", DENSE, "megatron"),
    "experts": ("deepseek-v3", "dgx-h100", EXPERTS, "megatron"),
}


@cache
def planned(name: str) -> Plan:
    model, cluster, strategy, backend = QUESTIONS[name]
    return estimate(
        Problem(
            model=load_model(model),
            cluster=load_cluster(cluster, strategy.world_size),
            workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=8192),
            constraints=Constraints(backends=(backend,)),
        ),
        strategy,
    )


@cache
def ladder(name: str) -> tuple[Rung, ...]:
    return trust_ladder(planned(name))


@pytest.mark.parametrize("name", QUESTIONS)
def test_rungs_grow_and_none_widens_the_interval(name: str) -> None:
    plan, rungs = planned(name), ladder(name)
    assert plan.chosen().world_size > LARGE
    sizes = [each.run.devices for each in rungs if each.run is not None]
    assert sizes
    assert sizes == sorted(set(sizes))
    assert all(size < plan.chosen().world_size for size in sizes)
    low, high = plan.step_time_interval_s
    for each in rungs:
        if each.interval_s is None:
            assert each.reason
            continue
        assert low <= each.interval_s[0] < plan.step_time_s < each.interval_s[1] <= high
    assert rungs[1].interval_s is None or rungs[1].interval_s[1] / rungs[1].interval_s[0] < high / low


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_smaller_run_keeps_the_shards_and_the_layers_of_a_stage(name: str) -> None:
    plan = planned(name)
    whole = plan.chosen()
    for each in ladder(name):
        if each.run is None:
            continue
        kept_fields: dict[str, Any] = {
            key: each.run.strategy[key] for key in ("tp", "cp", "ep", "etp", "pp", "micro_batch_size")
        }
        small = Strategy(**kept_fields)
        assert (small.tp, small.cp, small.ep, small.etp) == (whole.tp, whole.cp, whole.ep, whole.etp)
        assert small.micro_batch_size == whole.micro_batch_size
        kept = plan.problem.model.num_layers / whole.pp
        assert each.run.layers / small.pp == pytest.approx(kept, abs=1)
        # A stage with the same layers takes what a stage of the plan takes, so that a micro-batch costs alike.
        a_microbatch_s = each.run.expected_step_time_s / (int(str(each.run.strategy["num_microbatches"])) + small.pp)
        assert a_microbatch_s == pytest.approx(plan.step_time_s / (whole.num_microbatches + whole.pp), rel=0.35)


def test_a_plan_that_is_cheap_to_try_has_none() -> None:
    strategy = Strategy(tp=8, sp=True, pp=8, num_microbatches=64)
    model = load_model("llama-3.1-70b")
    problem = Problem(
        model=model,
        cluster=load_cluster("dgx-h100", strategy.world_size),
        workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=8192),
        constraints=Constraints(backends=("megatron",)),
    )
    assert trust_ladder(estimate(problem, strategy)) == ()


@pytest.mark.parametrize(("layers", "runs"), [(16, [1, 15]), (3, [1, 2]), (61, [3, 58])])
def test_a_shortened_model_keeps_its_kinds_of_layers(layers: int, runs: list[int]) -> None:
    model = shortened_model(load_model("deepseek-v3"), layers)
    assert [run.count for run in model.layer_runs] == runs
    assert model.num_layers == layers
