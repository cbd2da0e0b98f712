"""Every rank holds as many parameters as the plan says: counted in Megatron's own model, at 1,024 ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.asked import inside
from planner.backends.checking.worker import Worker
from planner.backends.megatron.layout import is_even
from planner.backends.megatron.space import TABLE
from planner.backends.megatron.vocabulary import padding_parameters
from planner.backends.registry import software
from planner.backends.rules.rule import rule_input
from planner.model.builtin import builtin_model
from planner.plan.plan import Plan
from planner.question.problem import Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from tests.megatron_verdicts import ask_megatron
from tests.plan_factory import make_cluster
from tests.validators import SharedWorkers

pytestmark = pytest.mark.slow
WORLD_SIZE = 1024

LLAMA = Strategy(tp=8, sp=True, pp=8, dp_shard=16, num_microbatches=16)
MIXTRAL = Strategy(tp=2, sp=True, pp=4, ep=8, dp_shard=128, num_microbatches=8)
DEEPSEEK = Strategy(tp=1, pp=16, ep=64, dp_shard=64, num_microbatches=16)

CASES: dict[str, tuple[str, Strategy, tuple[int, ...] | None]] = {
    "llama tp8 pp8": ("llama-3.1-70b", LLAMA, None),
    "llama vpp2": ("llama-3.1-70b", replace(LLAMA, vpp=2, schedule="interleaved", microbatch_group_size=8), None),
    "llama uneven": (
        "llama-3.1-70b",
        replace(LLAMA, cp=2, cp_kind="ring", dp_shard=8),
        (9, 10, 10, 10, 10, 10, 11, 10),
    ),
    "llama uneven vpp2": (
        "llama-3.1-70b",
        replace(LLAMA, pp=4, dp_shard=32, vpp=2, schedule="interleaved", microbatch_group_size=4),
        (9, 10, 10, 10, 10, 11, 11, 9),
    ),
    "llama, embedding and head alone": (
        "llama-3.1-405b",
        replace(LLAMA, pp=16, dp_shard=8, vpp=8, schedule="interleaved", microbatch_group_size=16),
        None,
    ),
    "llama, a stage of the head alone": ("llama-3.1-8b", replace(LLAMA, pp=4, dp_shard=32), (10, 11, 11, 0)),
    "experts, embedding and head alone": (
        "qwen3-235b-a22b",
        replace(
            MIXTRAL, pp=32, dp_shard=16, vpp=3, schedule="interleaved", microbatch_group_size=32, num_microbatches=32
        ),
        None,
    ),
    "llama pp16": ("llama-3.1-70b", replace(LLAMA, tp=4, pp=16), None),
    "llama zero 3": ("llama-3.1-8b", Strategy(dp_shard=1024, zero_stage=3), None),
    "tied, one stage": ("llama-3.2-1b", Strategy(tp=2, sp=True, dp_shard=512), None),
    "tied, two stages": ("llama-3.2-1b", Strategy(tp=2, sp=True, pp=2, dp_shard=256, num_microbatches=4), None),
    "biases and positions": ("gpt3-175b", LLAMA, None),
    "biases of query, key, value": ("qwen2.5-72b", LLAMA, None),
    "mixtral": ("mixtral-8x7b", MIXTRAL, None),
    "mixtral etp4": ("mixtral-8x7b", replace(MIXTRAL, tp=4, etp=4, ep=4, pp=8, dp_shard=32), None),
    "norms of query and key": ("qwen3-30b-a3b", replace(MIXTRAL, num_microbatches=16), None),
    "biases of experts": ("gpt-oss-120b", MIXTRAL, None),
    "shared experts": ("glm-4.5-air", replace(MIXTRAL, ep=16), None),
    "deepseek": ("deepseek-v3", DEEPSEEK, None),
    "deepseek tp8": ("deepseek-v3", replace(DEEPSEEK, tp=8, sp=True, ep=8, dp_shard=8), None),
    "deepseek v2": ("deepseek-v2", replace(DEEPSEEK, tp=2, sp=True, pp=4, ep=32, dp_shard=128), None),
}
"""Model, strategy and the layers of each chunk where they are not dealt by the planner."""


@pytest.fixture(scope="module")
def megatron(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("megatron-core")


def planned(name: str, strategy: Strategy, layers: tuple[int, ...] | None) -> Plan:
    """The strategy with the planner's own numbers, as it would be emitted."""
    model = builtin_model(name)
    workload = Workload(
        global_batch_size=strategy.global_batch_size, sequence_length=min(model.max_sequence_length, 4096)
    )
    problem = inside(Problem(model=model, cluster=make_cluster(WORLD_SIZE), workload=workload), software("megatron"))
    plan = estimate(problem, strategy, layers)
    assert TABLE.violations(rule_input(plan)) == []
    return plan


@pytest.mark.parametrize("name", CASES)
def test_parameters_of_ranks(megatron: Worker, name: str) -> None:
    plan = planned(*CASES[name])
    pp = plan.chosen().pp
    stages = sorted({0, 1 % pp, pp // 2, pp - 1})
    block = WORLD_SIZE // pp
    # The first rank of some stages and the last rank of others: every rank of a stage holds the same number.
    ranks = {stage: stage * block + (block - 1) * (stage % 2) for stage in stages}
    answer = ask_megatron(megatron, plan, ranks=tuple(ranks.values()))
    assert answer.accepted, answer.message
    for stage, rank in ranks.items():
        mine = plan.stages[stage]
        built = answer.facts["parameters"][str(rank)]
        assert len(built) == len(mine.chunks)
        assert sum(built) == mine.parameters_per_device + padding_parameters(plan, mine), f"stage {stage}, rank {rank}"


def test_the_cases_reach_layouts_and_padding() -> None:
    plans = [planned(*case) for case in CASES.values()]
    assert any(not is_even([chunk for stage in plan.stages for chunk in stage.chunks]) for plan in plans)
    ends = [(plan.stages[0].chunks[0].num_layers, plan.stages[-1].chunks[-1].num_layers) for plan in plans]
    assert {(0, 0), (10, 0)} <= set(ends)
    padded = {bool(padding_parameters(plan, plan.stages[0])) for plan in plans}
    assert padded == {True, False}
