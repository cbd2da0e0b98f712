"""Tensor-parallel overlap is written only where Megatron-LM's release has it and the cost model counts it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.megatron.arguments import parse_arguments
from planner.backends.megatron.space import TABLE
from planner.backends.megatron.spelling import overlap_tp_problem
from planner.backends.megatron.write import assumptions
from planner.backends.rules.rule import rule_input
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model, make_plan
from tests.round_trip import as_spelled, question

DENSE = Strategy(tp=2, sp=True, dp_shard=4, num_microbatches=2, zero_stage=1, overlap_tp=True)
EXPERTS = replace(DENSE, ep=2, etp=1)
BOTH = replace(EXPERTS, overlap_ep=True)
FLAG = "--tp-comm-overlap"


def planned(strategy: Strategy, model: ModelSpec, backend: str = "megatron", architecture: str = "hopper") -> Plan:
    cluster = make_cluster(strategy.world_size, architecture=architecture)
    return as_spelled(make_plan(strategy, model, cluster), backend)


@pytest.mark.parametrize(
    ("strategy", "model", "architecture", "said"),
    [
        (DENSE, make_model(), "hopper", True),
        (EXPERTS, make_moe_model(), "hopper", True),
        (BOTH, make_moe_model(), "hopper", False),
        (BOTH, make_moe_model(), "blackwell", True),
        (EXPERTS, make_mla_model(), "hopper", False),
        (EXPERTS, make_mla_model(), "blackwell", False),
    ],
)
def test_the_flag_is_written_where_it_hides_something(
    strategy: Strategy, model: ModelSpec, architecture: str, said: bool
) -> None:
    plan = planned(strategy, model, architecture=architecture)
    made = emitter("megatron")(plan, "torchrun")
    assert plan.chosen().overlap_tp is said
    assert (FLAG in parse_arguments(made.files["megatron.args"])) is said
    told = [line for line in assumptions(plan) if FLAG in line]
    why = overlap_tp_problem(rule_input(plan))
    assert told == ([] if said else [f"No {FLAG}, and none counted: {why}."])


def test_bridge_says_no_to_it_aloud() -> None:
    made = emitter("megatron-bridge")(planned(EXPERTS, make_mla_model(), "megatron-bridge"), "torchrun")
    assert "comm_overlap.tp_comm_overlap=false\n" in made.files["overrides.txt"]


def test_a_strategy_that_asks_for_it_beside_latent_attention_is_priced_without() -> None:
    problem = question("deepseek-v2", "dgx-h100", 64)
    problem = problem.model_copy(
        update={"constraints": problem.constraints.model_copy(update={"backends": ("megatron",)})}
    )
    wanted = Strategy(
        tp=2, sp=True, ep=8, pp=4, dp_shard=8, micro_batch_size=1, num_microbatches=12, zero_stage=1, overlap_tp=True
    )
    asked, without = (estimate(problem, each) for each in (wanted, replace(wanted, overlap_tp=False)))
    assert asked.chosen().overlap_tp is False
    assert asked.step_time_s == without.step_time_s


def test_without_sequence_parallelism_the_rule_still_refuses_it() -> None:
    plan = planned(replace(EXPERTS, sp=False), make_mla_model())
    assert plan.chosen().overlap_tp is True
    assert "A18" in {found.rule.partition(".")[2] for found in TABLE.violations(rule_input(plan))}
