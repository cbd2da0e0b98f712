"""What is the nearest plan that the native trainer runs?  Switches that it lacks are given up, and named."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.emission.emission import Projection
from planner.backends.emission.projections import strategy_projections
from planner.native.capabilities import interleaved_group_size
from planner.plan import Plan, StageOffload, StagePlan
from planner.strategy import GROUPED_SCHEDULES, Strategy

_Step = tuple[Strategy, str]


def project(plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that the trainer runs, and every difference.  Unchanged when there is none.

    Degrees, splits and recompute are never touched: the trainer takes them as they are.
    """
    before = plan.chosen()
    strategy, notes = before, list[Projection]()
    for change in (_no_meaning, _schedule, _zero_stage, _overlap, _offload):
        after, reason = change(strategy)
        notes += strategy_projections(strategy, after, reason)
        strategy = after
    stages = tuple(stage.model_copy(update={"offload": StageOffload()}) for stage in plan.stages)
    for old, new in zip(plan.stages, stages, strict=True):
        notes += _stage_notes(old, new, said={note.field for note in notes})
    if strategy == before and stages == plan.stages:
        return plan, ()
    return plan.model_copy(update={"strategy": strategy.to_dict(), "stages": stages}), tuple(notes)


def _no_meaning(s: Strategy) -> _Step:
    after = replace(s, sp=s.sp and s.tp > 1, cp_kind=s.cp_kind if s.cp > 1 else "none")
    return after, "has no meaning on an axis of one rank"


def _schedule(s: Strategy) -> _Step:
    if s.pp > 1 and s.schedule == "zb_h1" and s.num_microbatches % max(1, s.num_microbatches // s.pp):
        return replace(s, schedule="1f1b"), "torch's zero bubble takes whole rounds of micro-batches only"
    if s.pp > 1 and s.schedule in GROUPED_SCHEDULES:
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


def _offload(s: Strategy) -> _Step:
    return replace(s, optimizer_offload=False, activation_offload=False), "the trainer does not offload"


def _stage_notes(old: StagePlan, new: StagePlan, said: set[str]) -> list[Projection]:
    """Offload of a stage that the strategy's own differences do not already give up."""
    if old.offload == new.offload or said & {"optimizer_offload", "activation_offload"}:
        return []
    wanted = f"{old.offload.activation_layers} layers{', optimizer' if old.offload.optimizer else ''}"
    return [Projection(f"stages[{old.stage}].offload", wanted, "none", "the trainer does not offload")]
