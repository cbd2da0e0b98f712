"""What can Accelerate not say, and what is the nearest plan that it can?

- Recompute and offload of activations: whole layers, so selective recompute and activation offload become full
  recompute of the same layers (never more memory, more time).
- ZeRO-1 with tp or cp becomes ZeRO-2 (FSDP2 shards gradients too); one rank needs no ZeRO.
- Context parallelism is torch's ring; sp does not exist; overlaps are what FSDP2 and DDP always do.
- On the way through DeepSpeed its own projection holds.

Pipelines and expert parallelism have no neighbour here: ``rules`` refuses them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.backends import deepspeed
from planner.backends.accelerate.way import way
from planner.backends.deepspeed.project import whole_layer_stage
from planner.backends.emission.emission import Projection
from planner.backends.emission.layout import layout_of
from planner.backends.emission.projections import projection, strategy_projections
from planner.plan import Plan
from planner.strategy import Strategy

_LIBRARY = "accelerate 1.15.0"
_NO_CHOICE = "makes no difference in this plan; Accelerate has one spelling for it"


@dataclass(frozen=True, slots=True)
class Step:
    """One repair: what a strategy becomes, and why.  ``rules`` demands that none is left to do."""

    id: str
    source: str
    repair: Callable[[Strategy], Strategy]
    reason: str


def _zero(s: Strategy) -> Strategy:
    if s.world_size == 1:
        return replace(s, zero_stage=0)
    return replace(s, zero_stage=2) if s.zero_stage == 1 and s.tp * s.cp > 1 else s


def _overlap(s: Strategy) -> Strategy:
    kind = way(s)
    reduces = kind == "FSDP" or (kind == "MULTI_GPU" and s.dp > 1)
    return replace(s, overlap_grad_reduce=reduces, overlap_param_gather=kind == "FSDP")


def _recompute(s: Strategy) -> Strategy:
    if s.recompute == "selective" or s.activation_offload:
        return replace(s, recompute="full", recompute_modules=(), activation_offload=False)
    return replace(s, recompute_modules=())


def _plain(s: Strategy) -> Strategy:
    plain = s if s.pp * s.vpp > 1 else replace(s, schedule="1f1b", microbatch_group_size=0)
    plain = replace(plain, axis_order="tp-cp-ep-dp-pp", overlap_ep=False)
    return replace(plain, dp_replicate=1, dp_shard=s.dp) if s.zero_stage == 0 else plain


STEPS: tuple[Step, ...] = (
    Step(
        "P1", f"{_LIBRARY} utils/dataclasses.py (fsdp_version 2)", _zero, "FSDP2 shards gradients too; one rank: none"
    ),
    Step("P2", f"{_LIBRARY} parallelism_config.py:32", _plain, _NO_CHOICE),
    Step(
        "P3",
        "transformers 5 (base_model_tp_plan)",
        lambda s: replace(s, sp=False, overlap_tp=False),
        "sharding plans keep norms whole on every tp rank and overlap nothing",
    ),
    Step(
        "P4",
        f"{_LIBRARY} utils/dataclasses.py (TorchContextParallelConfig)",
        lambda s: replace(s, cp_kind="ring" if s.cp > 1 else "none"),
        "context parallelism is torch's ring",
    ),
    Step("P5", f"{_LIBRARY} utils/fsdp_utils.py", _recompute, "the script recomputes whole layers, not single modules"),
    Step("P6", "torch 2.13 FSDP2 and DDP", _overlap, "FSDP2 overlaps reduction and gathering always, DDP reduction"),
)


def goes_through_deepspeed(plan: Plan) -> bool:
    """Whether the plan, projected or not, is written for DeepSpeed."""
    return way(plan.chosen()) == "DEEPSPEED" or any(stage.offload.optimizer for stage in plan.stages)


def project(plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that the files say, and every difference.  Unchanged when there is none."""
    if goes_through_deepspeed(plan):
        return deepspeed.project(plan)
    strategy, notes = plan.chosen(), []
    for step in STEPS:
        changed = step.repair(strategy)
        notes += strategy_projections(strategy, changed, step.reason)
        strategy = changed
    stages = tuple(whole_layer_stage(stage, optimizer_offload=False) for stage in plan.stages)
    made = plan.model_copy(update={"strategy": strategy.to_dict(), "stages": stages})
    for before, after in zip(layout_of(plan), layout_of(made), strict=True):
        for name, was, now in (
            ("recompute", before.recompute, after.recompute),
            ("offload", before.offload, after.offload),
        ):
            if was != now:
                reason = "whole layers are recomputed, none is offloaded"
                notes.append(projection(f"{name} of stage {before.stage}", str(was), str(now), reason))
    return (made, tuple(notes)) if notes else (plan, ())
