"""The plans whose tiny runs were recorded: experts over two ranks, and two replicas with gradients that hide."""

from __future__ import annotations

from dataclasses import replace

from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster
from tests.plan_factory import make_cluster

SEQUENCE_LENGTH = 64
LAYERS = 2
HIDDEN = 256
EXPERTS = Strategy(
    dp_shard=2, ep=2, zero_stage=1, micro_batch_size=8, overlap_grad_reduce=False, overlap_param_gather=False
)
"""FSDP2 hides nothing on gloo, and so does this plan; the trainer runs ``EXPERTS_OF_TRAINER``, as it takes no other."""
EXPERTS_OF_TRAINER = replace(EXPERTS, overlap_grad_reduce=True, overlap_param_gather=True)
REPLICAS = Strategy(dp_shard=2, zero_stage=0, micro_batch_size=8, overlap_param_gather=False)
"""Gradients are summed while the backward pass goes on."""


def run_model(*, experts: bool) -> ModelSpec:
    """Two layers of width 256; eight experts of which two work."""
    attention = AttentionSpec(num_heads=8, num_kv_heads=8, head_dim=32, v_head_dim=32)
    moe = MoeSpec(num_experts=8, top_k=2, expert_intermediate_size=512)
    layer = (
        LayerSpec(attention=attention, moe=moe)
        if experts
        else LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=1024, gated=True))
    )
    return ModelSpec(
        name="recorded-moe" if experts else "recorded-llama",
        family="mixtral" if experts else "llama",
        hidden_size=HIDDEN,
        vocab_size=512,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=LAYERS),),
        max_sequence_length=SEQUENCE_LENGTH,
    )


def run_plan(*, experts: bool, strategy: Strategy | None = None) -> Plan:
    """The estimate of the strategy that ran."""
    strategy = strategy or (EXPERTS if experts else REPLICAS)
    problem = Problem(
        model=run_model(experts=experts),
        cluster=_two_cores(),
        workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=SEQUENCE_LENGTH),
        constraints=Constraints(backends=("unrestricted",)),
    )
    return estimate(problem, strategy)


def _two_cores() -> Cluster:
    """Two cores of a small machine as devices: what torch's products, copies and gloo's sums reach there, about."""
    cluster = make_cluster(2)
    pool = cluster.pools[0]
    device = pool.device.model_copy(
        update={
            "name": "cpu-core",
            "memory_bandwidth_bytes_per_s": 8e9,
            "peak_flops_per_s": {"bf16": 40e9},
        }
    )
    scale_up = pool.scale_up.model_copy(update={"bandwidth_bytes_per_s": 0.8e9, "latency_s": 100e-6})
    return cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device, "scale_up": scale_up}),)})
