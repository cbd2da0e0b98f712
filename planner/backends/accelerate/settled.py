"""Which parts of a strategy does Accelerate settle itself?  A strategy that says otherwise is refused, or spelled so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.accelerate.way import way
from planner.strategy import Strategy

_LIBRARY = f"accelerate {ACCELERATE_VERSION}"
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
