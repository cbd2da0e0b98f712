"""What is the nearest plan that the native trainer runs?  Switches that it lacks are given up, and named."""

from __future__ import annotations

from dataclasses import fields, replace

from planner.emit.emission import Projection
from planner.native.capabilities import RECOMPUTE_MODULES, interleaved_group_size
from planner.plan import Plan, StageOffload, StagePlan, StageRecompute
from planner.strategy import Strategy

_Step = tuple[Strategy, str]


def project(plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that the trainer runs, and every difference.  Unchanged when there is none.

    Degrees, splits and per-stage recompute counts are never touched: the trainer takes them as they are.
    """
    before = plan.chosen()
    strategy, notes = before, list[Projection]()
    for change in (_no_meaning, _schedule, _zero_stage, _overlap, _recompute, _offload):
        after, reason = change(strategy)
        notes += _differences(strategy, after, reason)
        strategy = after
    stages = tuple(_stage(stage) for stage in plan.stages)
    for old, new in zip(plan.stages, stages, strict=True):
        notes += _stage_notes(old, new, said={note.field for note in notes})
    if strategy == before and stages == plan.stages:
        return plan, ()
    return plan.model_copy(update={"strategy": strategy.to_dict(), "stages": stages}), tuple(notes)


def _differences(before: Strategy, after: Strategy, reason: str) -> list[Projection]:
    return [
        Projection(item.name, str(getattr(before, item.name)), str(getattr(after, item.name)), reason)
        for item in fields(Strategy)
        if getattr(before, item.name) != getattr(after, item.name)
    ]


def _no_meaning(s: Strategy) -> _Step:
    after = replace(s, sp=s.sp and s.tp > 1, cp_kind=s.cp_kind if s.cp > 1 else "none")
    return after, "has no meaning on an axis of one rank"


def _schedule(s: Strategy) -> _Step:
    if s.pp > 1 and s.schedule == "zb_h1":
        return replace(s, schedule="1f1b"), "torch has no ZB-H1 schedule"
    if s.pp > 1 and s.schedule == "interleaved":
        group = interleaved_group_size(s.pp, s.num_microbatches)
        if group == (s.microbatch_group_size or s.pp):
            return s, ""
        return replace(s, microbatch_group_size=group), "torch derives the micro-batch group from pp and micro-batches"
    return s, ""


def _zero_stage(s: Strategy) -> _Step:
    if s.pp > 1 and s.zero_stage > 1:
        reason = "torch's pipeline stages keep whole gradients and gathered chunks until the last micro-batch"
        return replace(s, zero_stage=1), reason
    return s, ""


def _overlap(s: Strategy) -> _Step:
    late = s.pp > 1 and s.dp * s.cp > 1
    after = replace(s, overlap_tp=False, overlap_ep=False, overlap_grad_reduce=s.overlap_grad_reduce and not late)
    return after, "the trainer does not overlap this communication"


def _recompute(s: Strategy) -> _Step:
    if s.recompute != "selective":
        return s, ""
    kept = tuple(module for module in s.recompute_modules if module in RECOMPUTE_MODULES)
    after = replace(s, recompute_modules=kept, recompute=s.recompute if kept else "none")
    return after, "recomputing a norm alone frees nothing here: the next matmul keeps its output"


def _offload(s: Strategy) -> _Step:
    return replace(s, optimizer_offload=False, activation_offload=False), "the trainer does not offload"


def _stage(stage: StagePlan) -> StagePlan:
    recompute = stage.recompute
    if recompute.policy == "selective":
        kept = tuple(module for module in recompute.modules if module in RECOMPUTE_MODULES)
        recompute = recompute.model_copy(update={"modules": kept}) if kept else StageRecompute(policy="none")
    return stage.model_copy(update={"recompute": recompute, "offload": StageOffload()})


def _stage_notes(old: StagePlan, new: StagePlan, said: set[str]) -> list[Projection]:
    """Differences of a stage that the strategy's own differences do not already say."""
    notes = []
    if old.recompute != new.recompute and not said & {"recompute", "recompute_modules"}:
        reason = "recomputing a norm alone frees nothing here: the next matmul keeps its output"
        name = f"stages[{old.stage}].recompute.modules"
        notes.append(Projection(name, str(old.recompute.modules), str(new.recompute.modules), reason))
    if old.offload != new.offload and not said & {"optimizer_offload", "activation_offload"}:
        name, wanted = f"stages[{old.stage}].offload", f"{old.offload.activation_layers} layers"
        notes.append(Projection(name, wanted, "none", "the trainer does not offload"))
    return notes
