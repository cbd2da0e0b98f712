"""Random plans for property tests: mostly legal, over every axis that emitters know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from hypothesis import strategies as st

from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.optimizers import OptimizerName
from planner.question.problem import Workload
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES, ScheduleName
from planner.strategy.strategy import CpKind, RecomputeModule, RecomputePolicy, Strategy
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model, make_plan

MODULES: tuple[RecomputeModule, ...] = ("attention_core", "norm", "activation", "mlp", "moe")


@st.composite
def model_specs(draw: st.DrawFn) -> ModelSpec:
    num_layers = draw(st.integers(4, 24))
    kind = draw(st.sampled_from(["dense", "gqa", "tied", "moe", "moe_shared", "mla"]))
    if kind == "moe":
        return make_moe_model(num_layers, num_dense=draw(st.integers(0, 2)))
    if kind == "moe_shared":
        return make_moe_model(num_layers, shared=512, num_mtp_layers=draw(st.integers(0, 2)))
    if kind == "mla":
        return make_mla_model(num_layers, num_dense=draw(st.integers(0, 3)), num_mtp_layers=draw(st.integers(0, 1)))
    return make_model(num_layers, num_kv_heads=4 if kind == "gqa" else 16, tie_embeddings=kind == "tied")


@st.composite
def parallel_strategies(
    draw: st.DrawFn, model: ModelSpec, schedules: Sequence[ScheduleName] = get_args(ScheduleName)
) -> Strategy:
    """Degrees and switches; most combinations are legal somewhere."""
    experts = any(kind.moe for kind in model.layer_kinds)
    tp = draw(st.sampled_from([1, 2, 4]))
    pp = draw(st.sampled_from([1, 2, 3, 4]))
    cp = draw(st.sampled_from([1, 1, 2]))
    cp_kind: CpKind = draw(st.sampled_from(["ring", "all_to_all"])) if cp > 1 else "none"
    schedule: ScheduleName = "1f1b"
    vpp = 1
    if pp > 1:
        schedule = draw(st.sampled_from(schedules))
        several = draw(st.sampled_from([2, 3])) if schedule in LOOPED_SCHEDULES else 1
        vpp = 2 if schedule in V_SCHEDULES else several
    dp_shard = draw(st.sampled_from([1, 2, 4]))
    recompute: RecomputePolicy = draw(st.sampled_from(["none", "selective", "full"]))
    modules = draw(st.lists(st.sampled_from(MODULES), min_size=1, unique=True)) if recompute == "selective" else []
    return Strategy(
        tp=tp,
        sp=tp > 1 and (experts or draw(st.booleans())),
        cp=cp,
        cp_kind=cp_kind,
        ep=draw(st.sampled_from([d for d in (1, 2, 4, 8) if (tp * cp * dp_shard) % d == 0])) if experts else 1,
        etp=1,
        pp=pp,
        vpp=vpp,
        dp_replicate=draw(st.sampled_from([1, 1, 2])),
        dp_shard=dp_shard,
        micro_batch_size=draw(st.sampled_from([1, 2])),
        num_microbatches=draw(st.sampled_from([1, 4, 6, 8, 12])),
        schedule=schedule,
        microbatch_group_size=pp if schedule in GROUPED_SCHEDULES else 0,
        zero_stage=draw(st.integers(0, 3)),
        recompute=recompute,
        recompute_modules=tuple(modules),
        optimizer_offload=draw(st.sampled_from([False, False, True])),
        activation_offload=draw(st.sampled_from([False, False, True])),
        overlap_grad_reduce=True,
        overlap_param_gather=draw(st.booleans()),
        overlap_tp=draw(st.sampled_from([False, False, True])),
    )


@st.composite
def plans(
    draw: st.DrawFn, schedules: Sequence[ScheduleName] = get_args(ScheduleName), *, one_setting: bool = False
) -> Plan:
    """``one_setting``: the same recompute and offload on all stages, as one flag says it."""
    model = draw(model_specs())
    strategy = draw(parallel_strategies(model, schedules))
    layers = _split(draw, model.num_layers, strategy.num_chunks)
    offloaded = None if one_setting else [draw(st.integers(0, model.num_layers)) for _ in range(strategy.pp)]
    optimizer: OptimizerName = draw(st.sampled_from(["adam", "adam", "adam_bf16_states", "sgd", "muon"]))
    workload = Workload(
        global_batch_size=strategy.global_batch_size,
        sequence_length=draw(st.sampled_from([1024, 4096])),
        precision=draw(st.sampled_from(["bf16", "bf16", "fp16", "fp8"])),
        optimizer=optimizer,
        gradient_dtype=draw(st.sampled_from(["fp32", "bf16"])),
    )
    per_node = max(size for size in range(1, 9) if strategy.world_size % size == 0)
    cluster = make_cluster(
        strategy.world_size,
        devices_per_node=per_node,
        architecture=draw(st.sampled_from(["hopper", "blackwell", "ampere"])),
    )
    if one_setting:
        first = draw(st.integers(0, max(layers))) if strategy.recompute == "full" else max(layers)
        recomputed = [min(first, count) for count in layers]
    else:
        recomputed = [draw(st.integers(0, count)) for count in layers]
    return make_plan(
        strategy,
        model,
        cluster,
        workload,
        layers_per_chunk=layers,
        recompute_layers_per_chunk=recomputed,
        activation_offload_layers=offloaded,
    )


def _split(draw: st.DrawFn, num_layers: int, num_chunks: int) -> list[int]:
    """Even, or any composition with empty chunks allowed."""
    if num_layers % num_chunks == 0 and draw(st.booleans()):
        return [num_layers // num_chunks] * num_chunks
    cuts = sorted(draw(st.lists(st.integers(0, num_layers), min_size=num_chunks - 1, max_size=num_chunks - 1)))
    return [high - low for low, high in zip([0, *cuts], [*cuts, num_layers], strict=True)]
