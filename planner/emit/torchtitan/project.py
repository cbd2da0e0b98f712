"""What can torchtitan not say, and what is the nearest plan that it can?

- Schedules: those that torch has a class for and that run whole backward passes.  ``interleaved_zb`` becomes
  ``interleaved`` with the same chunks; others become 1F1B with one chunk a stage, each keeping its layers.
- ZeRO: FSDP2 scatters gradients (2 or 3) without a pipeline, and keeps them whole (1) with one; replication without
  sharding is stage 0.
- Context parallelism gathers keys and values along a ring; experts are split over tp only without ep.
- Recompute: every layer or none; whole layers, or torchtitan's own selection.  What offloads activations recomputes
  them instead (never more memory, more time).
- Overlap is FSDP2's own and async tensor parallelism.

What has no neighbour (the model's family, heads that do not divide, fp16) stays, and ``rules`` refuses it.  Predicted
numbers are not touched: cost a projected plan again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from planner.emit.emission import Projection
from planner.emit.projections import Repair, projected, repaired
from planner.emit.rule_input import mixtures
from planner.emit.torchtitan.degrees import (
    SCHEDULES,
    SELECTIVE_MODULES,
    SPLIT_BACKWARD_SCHEDULES,
    expert_tensor_degree,
    group_size,
)
from planner.emit.torchtitan.version import TOML_VERSION, TORCHTITAN_VERSION
from planner.plan import ChunkPlan, Plan, StageOffload, StagePlan, StageRecompute
from planner.strategy import GROUPED_SCHEDULES, LOOPED_SCHEDULES, Strategy

_NO_CHOICE = "makes no difference in this plan; torchtitan has one spelling for it"
_Step = tuple[Strategy, str]


def project(plan: Plan, version: str = TORCHTITAN_VERSION) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that torchtitan's files say, and every difference.  Unchanged when there is none."""
    strategy, notes = repaired(plan, (*_STEPS, *(_TOML_STEPS if version == TOML_VERSION else ())))
    stages, more = _stages(plan, strategy)
    return projected(plan, strategy, stages, notes + more)


def _schedule(s: Strategy, plan: Plan) -> _Step:
    if s.pp == 1:
        return replace(s, schedule="1f1b"), _NO_CHOICE
    plain = replace(s, schedule="1f1b", vpp=1)
    if s.schedule not in SCHEDULES:
        return plain, f"torch has no schedule {s.schedule}"
    if s.schedule in LOOPED_SCHEDULES and s.vpp == 1:
        return plain, "with one chunk a stage there is nothing to interleave"
    if s.schedule in GROUPED_SCHEDULES and s.num_microbatches % max(1, s.num_microbatches // s.pp):
        return plain, "torch's interleaved schedules run whole rounds of micro-batches"
    return s, ""


def _split_backward(s: Strategy, plan: Plan) -> _Step:
    if s.schedule not in SPLIT_BACKWARD_SCHEDULES:
        return s, ""
    reason = "split backward passes fail on layers and loss that torchtitan compiles"
    if s.schedule in LOOPED_SCHEDULES:
        return replace(s, schedule="interleaved"), reason
    return replace(s, schedule="1f1b", vpp=1), reason


def _few_microbatches(s: Strategy, plan: Plan) -> _Step:
    if s.pp > 1 and s.schedule == "1f1b" and s.num_microbatches < s.pp:
        return replace(s, schedule="gpipe"), "torch's 1F1B needs a micro-batch a stage; with fewer, GPipe is the same"
    return s, ""


def _group(s: Strategy, plan: Plan) -> _Step:
    reason = "torch derives the micro-batch group from pp and micro-batches"
    return replace(s, microbatch_group_size=group_size(s)), reason


def _zero(s: Strategy, plan: Plan) -> _Step:
    if s.zero_stage == 0 and s.cp > 1:
        return replace(s, zero_stage=1), "FSDP2 always shards parameters over the context-parallel ranks"
    return s, ""


def _zero_and_pipeline(s: Strategy, plan: Plan) -> _Step:
    if s.pp > 1:
        reason = "torch's pipeline stages keep whole gradients and gathered chunks until the last micro-batch"
        return replace(s, zero_stage=min(s.zero_stage, 1)), reason
    stage = 2 if s.zero_stage == 1 else s.zero_stage
    return replace(s, zero_stage=stage), "FSDP2 scatters gradients after every backward pass"


def _replicas(s: Strategy, plan: Plan) -> _Step:
    if s.zero_stage:
        return s, ""
    return replace(s, dp_replicate=1, dp_shard=s.dp), _NO_CHOICE


def _context(s: Strategy, plan: Plan) -> _Step:
    reason = "FlexAttention gathers keys and values over the cp ranks" if s.cp > 1 else _NO_CHOICE
    return replace(s, cp_kind="ring" if s.cp > 1 else "none"), reason


def _tensor(s: Strategy, plan: Plan) -> _Step:
    return replace(s, sp=s.sp and s.tp > 1), _NO_CHOICE


def _tensor_overlap(s: Strategy, plan: Plan) -> _Step:
    return replace(s, overlap_tp=s.overlap_tp and s.sp), "async tensor parallelism pipelines what sp gathers"


def _experts(s: Strategy, plan: Plan) -> _Step:
    etp = expert_tensor_degree(s.tp, s.ep, experts=bool(mixtures(plan.problem.model)))
    return replace(s, etp=etp), "experts are split over tp without ep, and kept whole with it"


def _recompute(s: Strategy, plan: Plan) -> _Step:
    offloads = s.activation_offload or any(stage.offload.activation_layers for stage in plan.stages)
    if offloads:
        reason = "activations cannot be offloaded; they are recomputed instead"
        return replace(s, recompute="full", recompute_modules=(), activation_offload=False), reason
    if s.recompute != "selective":
        return replace(s, recompute_modules=()), _NO_CHOICE
    if set(s.recompute_modules) <= set(SELECTIVE_MODULES):
        reason = "torchtitan's selection recomputes norms, activations and every second matrix product"
        return replace(s, recompute_modules=SELECTIVE_MODULES), reason
    return replace(s, recompute="full", recompute_modules=()), "torchtitan's selection cannot be changed"


def _optimizer_offload(s: Strategy, plan: Plan) -> _Step:
    reason = "enable_cpu_offload moves parameters and gradients to the host too, not only optimizer states"
    return replace(s, optimizer_offload=False), reason


def _overlap(s: Strategy, plan: Plan) -> _Step:
    changed = replace(s, overlap_grad_reduce=s.pp == 1, overlap_param_gather=True)
    return changed, "FSDP2 always prefetches, and overlaps gradients unless a pipeline reduces them at the end"


def _expert_overlap(s: Strategy, plan: Plan) -> _Step:
    reason = "the standard dispatcher does not overlap its all-to-all" if s.ep > 1 else _NO_CHOICE
    return replace(s, overlap_ep=False), reason


def _order(s: Strategy, plan: Plan) -> _Step:
    reason = "pipeline stages are the outermost axis" if s.pp > 1 and s.dp > 1 else _NO_CHOICE
    return replace(s, axis_order="tp-cp-ep-dp-pp"), reason


def _always_sequence_parallel(s: Strategy, plan: Plan) -> _Step:
    return replace(s, sp=s.tp > 1), f"torchtitan {TOML_VERSION} has tensor parallelism only with sequence parallelism"


_STEPS: tuple[Repair, ...] = (
    _schedule,
    _split_backward,
    _few_microbatches,
    _group,
    _zero,
    _zero_and_pipeline,
    _replicas,
    _context,
    _tensor,
    _tensor_overlap,
    _experts,
    _recompute,
    _optimizer_offload,
    _overlap,
    _expert_overlap,
    _order,
)
"""In this order: later steps depend on the schedule and the ZeRO stage that earlier ones settle."""
_TOML_STEPS = (_always_sequence_parallel,)


def _stages(plan: Plan, strategy: Strategy) -> tuple[tuple[StagePlan, ...], list[Projection]]:
    """Stages in the projected schedule, recompute of every layer or none, no offload."""
    merged = plan.stages if strategy.vpp == plan.chosen().vpp else tuple(_merged(plan, stage) for stage in plan.stages)
    made = tuple(_stage(stage, strategy) for stage in merged)
    notes = []
    for field, name, reason in (
        ("stages/chunks", "chunks", "one chunk a stage"),
        ("stages/recompute", "recompute", "one policy for every layer of every stage"),
        ("stages/offload", "offload", "nothing is offloaded"),
    ):
        old, new = ([_words(getattr(stage, name)) for stage in stages] for stages in (plan.stages, made))
        if old != new:
            notes.append(Projection(field, "; ".join(old), "; ".join(new), reason))
    return made, notes


def _words(value: object) -> str:
    if isinstance(value, StageRecompute):
        modules = f" ({', '.join(value.modules)})" if value.modules else ""
        return f"{value.policy}{modules} {'/'.join(map(str, value.num_layers_per_chunk))}".rstrip()
    if isinstance(value, StageOffload):
        return f"optimizer {'on' if value.optimizer else 'off'}, {value.activation_layers} activation layers"
    if isinstance(value, tuple):
        return "+".join(f"{chunk.chunk}:{chunk.num_layers}" for chunk in value if isinstance(chunk, ChunkPlan))
    return str(value)


def _merged(plan: Plan, own: StagePlan) -> StagePlan:
    """The stage with one chunk of as many layers as its chunks had together."""
    counts = [sum(chunk.num_layers for chunk in each.chunks) for each in plan.stages]
    position = plan.stages.index(own)
    last = position == len(plan.stages) - 1
    chunk = ChunkPlan(
        chunk=position,
        first_layer=[0, *accumulate(counts)][position],
        num_layers=counts[position],
        has_embedding=position == 0,
        has_head=last,
        num_mtp_layers=sum(c.num_mtp_layers for each in plan.stages for c in each.chunks) if last else 0,
    )
    return own.model_copy(update={"chunks": (chunk,)})


def _stage(stage: StagePlan, strategy: Strategy) -> StagePlan:
    layers = tuple(chunk.num_layers for chunk in stage.chunks)
    recompute = StageRecompute(policy="none")
    if strategy.recompute != "none" and any(layers):
        recompute = StageRecompute(
            policy=strategy.recompute, modules=strategy.recompute_modules, num_layers_per_chunk=layers
        )
    return stage.model_copy(update={"recompute": recompute, "offload": StageOffload()})
