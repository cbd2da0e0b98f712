"""What can DeepSpeed not say, and what is the nearest plan that it can?

- Schedules: 1F1B, and DualPipeV with enough micro-batches.  All others become 1F1B with one chunk a stage; every
  stage keeps its number of layers.
- ZeRO: not above stage 1 with a pipeline; not below stage 1 with fp32 gradients or offload; always over all
  data-parallel ranks.
- Context parallelism is Ulysses; experts have etp = 1; sp does not exist.
- Recompute and offload of activations: whole layers are recomputed, so selective recompute and activation offload
  become full recompute of the same layers (never more memory, more time).
- Overlap switches that have no effect are off.

What has no neighbour (tp or ep inside a pipeline, fp8, multi-token prediction) stays, and ``rules`` refuses it.
Predicted numbers are not touched: cost a projected plan again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, groupby

from planner.backends.deepspeed.expressible_rules import (
    dualpipev_ok,
    fp32_gradients_on_bf16,
    gradient_overlap_possible,
)
from planner.backends.emission.emission import Projection
from planner.backends.emission.projections import Repair, projected, repaired
from planner.backends.rules.rule import rule_input
from planner.plan import ChunkPlan, Plan, StageOffload, StagePlan, StageRecompute
from planner.strategy import Strategy

_NO_CHOICE = "makes no difference in this plan; DeepSpeed has one spelling for it"


def project(plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that DeepSpeed's files say, and every difference.  Unchanged when there is none."""
    strategy, notes = repaired(plan, _STEPS)
    stages, more = _stages(plan, strategy)
    return projected(plan, strategy, stages, notes + more)


def _schedule(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if dualpipev_ok(s):
        return replace(s, microbatch_group_size=0), _NO_CHOICE
    plain = replace(s, schedule="1f1b", vpp=1, microbatch_group_size=0)
    if s.pp == 1:
        return plain, _NO_CHOICE
    if s.schedule == "dualpipev":
        return plain, "DualPipeV needs two chunks a stage and at least 2 x pp micro-batches"
    return plain, "DeepSpeed's pipeline runs 1F1B and DualPipeV only"


def _zero_with_pipeline(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    stage = min(s.zero_stage, 1) if s.pp > 1 else s.zero_stage
    return replace(s, zero_stage=stage), "ZeRO-2 and ZeRO-3 do not run with a pipeline"


def _zero_needed(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if s.zero_stage:
        return s, ""
    if s.optimizer_offload or any(stage.offload.optimizer for stage in plan.stages):
        return replace(s, zero_stage=1), "optimizer offload belongs to ZeRO"
    if plan.problem.workload.gradient_dtype == "fp32":
        return replace(s, zero_stage=1), "without ZeRO gradients accumulate only in the model's dtype, not in fp32"
    return s, ""


def _hybrid(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if s.dp_replicate == 1 or s.zero_stage == 0:
        return s, ""
    return replace(s, dp_replicate=1, dp_shard=s.dp), "ZeRO shards over all data-parallel ranks; MiCS was removed"


def _context(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if s.cp == 1:
        return replace(s, cp_kind="none"), _NO_CHOICE
    return replace(s, cp_kind="all_to_all"), "context parallelism is Ulysses, an all-to-all over heads"


def _sequence(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    reason = "AutoTP keeps norms and their activations whole on every tp rank" if s.tp > 1 else _NO_CHOICE
    return replace(s, sp=False), reason


def _experts(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    return replace(s, etp=1), "AutoEP does not split single experts"


def _recompute(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    stages = plan.stages
    offloads = s.activation_offload or any(stage.offload.activation_layers for stage in stages)
    if s.recompute == "none" and not offloads:
        return replace(s, recompute_modules=()), _NO_CHOICE
    reason = "DeepSpeed recomputes whole layers, not single modules"
    if offloads:
        reason = "DeepSpeed offloads no saved activations of a layer; the layers are recomputed instead"
    elif s.recompute == "full":
        reason = _NO_CHOICE
    return replace(s, recompute="full", recompute_modules=(), activation_offload=False), reason


def _offload(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    wanted = s.optimizer_offload or any(stage.offload.optimizer for stage in plan.stages)
    return replace(s, optimizer_offload=wanted), "one config serves all stages"


def _grad_overlap(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    fp32 = fp32_gradients_on_bf16(rule_input(plan))
    overlap = s.overlap_grad_reduce and gradient_overlap_possible(s, fp32_gradients_on_bf16=fp32)
    if s.dp * s.cp == 1:
        return replace(s, overlap_grad_reduce=overlap), _NO_CHOICE
    where = (
        "with a pipeline" if s.pp > 1 else "without ZeRO" if s.zero_stage == 0 else "in the BF16 optimizer of ZeRO-1"
    )
    return replace(s, overlap_grad_reduce=overlap), f"gradients are reduced after the backward pass {where}"


def _gather_overlap(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    overlap = s.overlap_param_gather and s.zero_stage == 3 and s.overlap_grad_reduce
    if s.dp * s.cp == 1:
        return replace(s, overlap_param_gather=overlap), _NO_CHOICE
    if s.zero_stage == 3:
        return replace(s, overlap_param_gather=overlap), "one switch (overlap_comm) makes both streams"
    return replace(s, overlap_param_gather=overlap), "parameters are prefetched only in ZeRO-3"


def _other_overlap(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    changed = replace(s, overlap_ep=False, overlap_tp=s.overlap_tp and s.tp > 1)
    return changed, "AutoEP does not overlap its all-to-all" if s.ep > 1 else _NO_CHOICE


def _order(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    reason = "pipeline stages are the outermost axis, data parallelism lies inside" if s.pp > 1 else _NO_CHOICE
    return replace(s, axis_order="tp-cp-ep-dp-pp"), reason


_STEPS: tuple[Repair, ...] = (
    _schedule,
    _zero_with_pipeline,
    _zero_needed,
    _hybrid,
    _context,
    _sequence,
    _experts,
    _recompute,
    _offload,
    _grad_overlap,
    _gather_overlap,
    _other_overlap,
    _order,
)
"""In this order: what a later step allows depends on the schedule and the ZeRO stage that earlier ones settle."""


def _stages(plan: Plan, strategy: Strategy) -> tuple[tuple[StagePlan, ...], list[Projection]]:
    """Stages in the projected schedule, whole-layer recompute, one offload switch."""
    stages = (
        [_merged(plan, stage) for stage in range(strategy.pp)] if strategy.vpp != plan.chosen().vpp else plan.stages
    )
    made = tuple(whole_layer_stage(stage, optimizer_offload=strategy.optimizer_offload) for stage in stages)
    notes = []
    for name, wanted, emitted, reason in (
        ("stages/chunks", [s.chunks for s in plan.stages], [s.chunks for s in made], "one chunk a stage"),
        ("stages/recompute", [s.recompute for s in plan.stages], [s.recompute for s in made], "whole layers only"),
        ("stages/offload", [s.offload for s in plan.stages], [s.offload for s in made], "one config for all stages"),
    ):
        if wanted != emitted:
            notes.append(Projection(name, _words(wanted), _words(emitted), reason))
    return made, notes


def _words(values: Sequence[object]) -> str:
    """``none x 3; full 4``: equal neighbours counted."""
    runs = [(word, len(list(run))) for word, run in groupby(map(_word, values))]
    return "; ".join(f"{word} x {count}" if count > 1 else word for word, count in runs)


def _word(value: object) -> str:
    if isinstance(value, StageRecompute):
        modules = f" ({', '.join(value.modules)})" if value.modules else ""
        return f"{value.policy}{modules} {'/'.join(map(str, value.num_layers_per_chunk))}".rstrip()
    if isinstance(value, StageOffload):
        return f"optimizer {'on' if value.optimizer else 'off'}, {value.activation_layers} activation layers"
    if isinstance(value, tuple):
        return "+".join(str(chunk.num_layers) for chunk in value if isinstance(chunk, ChunkPlan))
    return str(value)


def _merged(plan: Plan, stage: int) -> StagePlan:
    """The stage with one chunk of as many layers as its chunks had together."""
    counts = [sum(chunk.num_layers for chunk in each.chunks) for each in plan.stages]
    first = [0, *accumulate(counts)][stage]
    last = stage == len(plan.stages) - 1
    every = [chunk for each in plan.stages for chunk in each.chunks]
    chunk = ChunkPlan(
        chunk=stage,
        first_layer=first,
        num_layers=counts[stage],
        has_embedding=stage == 0,
        has_head=last,
        num_mtp_layers=sum(chunk.num_mtp_layers for chunk in every) if last else 0,
    )
    own = plan.stages[stage]
    layers = own.recompute.num_layers_per_chunk
    merged = own.recompute.model_copy(update={"num_layers_per_chunk": (sum(layers),) if layers else ()})
    return own.model_copy(update={"chunks": (chunk,), "recompute": merged})


def whole_layer_stage(stage: StagePlan, *, optimizer_offload: bool) -> StagePlan:
    """The stage with whole layers recomputed where modules were, or where activations went to the host."""
    recompute, offload = stage.recompute, StageOffload(optimizer=optimizer_offload)
    layers = _recomputed_layers(stage)
    if recompute.policy != "none" or stage.offload.activation_layers:
        recompute = StageRecompute(policy="full", num_layers_per_chunk=layers)
    else:
        recompute = StageRecompute(policy="none")
    return stage.model_copy(update={"recompute": recompute, "offload": offload})


def _recomputed_layers(stage: StagePlan) -> tuple[int, ...]:
    """First layers of every chunk that must be recomputed so that no more is saved than planned."""
    wanted = stage.recompute.num_layers_per_chunk
    if stage.recompute.policy == "none":
        wanted = tuple(0 for _ in stage.chunks)
    elif not wanted:
        wanted = tuple(chunk.num_layers for chunk in stage.chunks)
    missing = stage.offload.activation_layers - sum(wanted)
    layers = []
    for chunk, count in zip(stage.chunks, wanted, strict=True):
        extra = max(0, min(missing, chunk.num_layers - count))
        missing -= extra
        layers.append(min(count + extra, chunk.num_layers))
    return tuple(layers)
