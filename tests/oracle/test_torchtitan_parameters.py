"""A rank of the real, parallelised torchtitan model holds the parameters that the planner counts.

torchtitan builds the model on the meta device and parallelises it (pipeline split, tensor parallelism, FSDP2) as one
rank of a pretended group of 1,024.  The planner counts a rank's parameters after tp, ep and etp; FSDP divides those by
``dp_shard * cp`` (dense) and by the experts' shards.  Where the first dimension of a tensor does not divide, FSDP
rounds up: the first ranks of a group hold more, the last ones less, and together they hold what the planner counts.
"""

from __future__ import annotations

import pytest

from planner.backends.checking.worker import Worker
from planner.backends.torchtitan.version import VERSIONS
from planner.model.load import load_model
from planner.model.operators import layer_operators
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan, StagePlan
from planner.question.problem import Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_mla_model
from tests.torchtitan_cases import deepseek_like, llama_like, question, qwen_like
from tests.validators import SharedWorkers

emit = emitter("torchtitan")

pytestmark = pytest.mark.slow
RANKS = 1024


@pytest.fixture(scope="module")
def torchtitan(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("torchtitan")


@pytest.fixture(scope="module", params=VERSIONS)
def either_release(request: pytest.FixtureRequest, shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("torchtitan", request.param)


def planned(model: ModelSpec, strategy: Strategy) -> Plan:
    world = strategy.world_size
    cluster = load_cluster("dgx-h100", world) if world == RANKS else make_cluster(world)
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
    return estimate(Problem(model=model, cluster=cluster, workload=workload), strategy)


def expert_parameters(model: ModelSpec, stage: StagePlan, strategy: Strategy) -> int:
    """Routed experts of a rank of the stage before sharding."""
    kinds = model.layer_kind_sequence()
    layers = [
        index for chunk in stage.chunks for index in range(chunk.first_layer, chunk.first_layer + chunk.num_layers)
    ]
    all_of_them = sum(
        operator.parameters
        for layer in layers
        for operator in layer_operators(model, kinds[layer])
        if operator.op_class == "grouped_matmul"
    )
    return all_of_them // (strategy.ep * strategy.etp)


def expected(model: ModelSpec, stage: StagePlan, strategy: Strategy) -> float:
    """Parameters of a rank where everything divides, of the mean rank where not."""
    experts = expert_parameters(model, stage, strategy)
    dense = stage.parameters_per_device - experts
    return dense / (strategy.dp_shard * strategy.cp) + experts / (strategy.edp // strategy.dp_replicate)


CASES: dict[str, tuple[str, Strategy]] = {
    "8b, tp x pp x fsdp": (
        "llama-3.1-8b",
        Strategy(tp=4, sp=True, pp=4, dp_shard=64, num_microbatches=8, overlap_grad_reduce=False),
    ),
    "8b, hsdp": (
        "llama-3.1-8b",
        Strategy(tp=8, sp=True, dp_replicate=4, dp_shard=32, num_microbatches=2, zero_stage=3),
    ),
    "70b, interleaved": (
        "llama-3.1-70b",
        Strategy(
            tp=8,
            sp=True,
            pp=8,
            vpp=2,
            schedule="interleaved",
            microbatch_group_size=8,
            dp_shard=16,
            num_microbatches=16,
            overlap_grad_reduce=False,
        ),
    ),
    "deepseek-v3, ep x tp x pp": (
        "deepseek-v3",
        Strategy(tp=4, sp=True, ep=64, pp=4, dp_shard=64, num_microbatches=8, overlap_grad_reduce=False),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rank_of_1024_holds_exactly_the_planned_parameters(name: str, torchtitan: Worker) -> None:
    model_name, strategy = CASES[name]
    # torchtitan has multi-token prediction only without a pipeline, and no emitted file has it.
    model = load_model(model_name).model_copy(update={"mtp": None})
    plan = planned(model, strategy)
    emission = emit(plan, "torchrun")
    for stage in sorted({0, strategy.pp // 2, strategy.pp - 1}):
        # The first rank of the stage; in these cases every tensor divides, so that all its ranks hold the same.
        rank = stage * RANKS // strategy.pp
        verdict = torchtitan.ask(question(emission.files, RANKS, build=True, rank=rank))
        assert verdict.accepted, verdict.message
        assert verdict.facts["local_parameters"] == expected(model, plan.stages[stage], strategy)


UNEVEN: dict[str, tuple[ModelSpec, Strategy]] = {
    "dense, three shards": (llama_like(), Strategy(tp=2, sp=True, dp_shard=3, num_microbatches=2, zero_stage=3)),
    "tied, three shards": (llama_like(tied=True), Strategy(dp_shard=3, num_microbatches=2, zero_stage=2)),
    "normed heads, context parallel": (
        qwen_like(),
        Strategy(cp=2, cp_kind="ring", dp_shard=3, num_microbatches=2, zero_stage=3),
    ),
    "experts, no ep": (
        qwen_like(experts=8),
        Strategy(tp=2, sp=True, etp=2, dp_shard=3, num_microbatches=2, zero_stage=3),
    ),
    "experts, ep across tp": (
        deepseek_like(),
        Strategy(tp=2, sp=True, ep=2, dp_shard=3, num_microbatches=2, zero_stage=3),
    ),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_where_shards_round_up_all_ranks_together_hold_the_planned_parameters(name: str, torchtitan: Worker) -> None:
    model, strategy = UNEVEN[name]
    plan = planned(model, strategy)
    emission = emit(plan, "torchrun")
    ranks = strategy.world_size
    verdicts = [torchtitan.ask(question(emission.files, ranks, build=True, rank=rank)) for rank in range(ranks)]
    assert all(verdict.accepted for verdict in verdicts), [verdict.message for verdict in verdicts]
    held = [verdict.facts["local_parameters"] for verdict in verdicts]
    assert sum(held) == pytest.approx(ranks * expected(model, plan.stages[0], strategy), rel=1e-12)
    assert held[0] == max(held) > min(held)


@pytest.mark.parametrize(
    "model",
    [llama_like(), qwen_like(), qwen_like(experts=6), deepseek_like(), deepseek_like(query_rank=None, dense=0)],
    ids=["llama", "qwen", "qwen experts", "deepseek", "deepseek without query rank"],
)
def test_the_whole_model_has_the_planned_parameters(model: ModelSpec, either_release: Worker) -> None:
    plan = planned(model, Strategy(dp_shard=2, num_microbatches=2, zero_stage=3))
    files = emit(plan, "torchrun", either_release.version).files
    verdict = either_release.ask(question(files, 2, build=True))
    assert verdict.accepted, verdict.message
    assert verdict.facts["total_parameters"] == total_parameters(model)


def test_a_score_correction_is_a_buffer_in_torchtitan_and_a_parameter_here(torchtitan: Worker) -> None:
    model = make_mla_model()
    plan = planned(model, Strategy(dp_shard=2, num_microbatches=2, zero_stage=3))
    verdict = torchtitan.ask(question(emit(plan, "torchrun").files, 2, build=True))
    moe = model.layer_kinds[0].moe
    assert moe is not None
    assert moe.router_bias
    assert total_parameters(model) - verdict.facts["total_parameters"] == 7 * moe.num_experts
