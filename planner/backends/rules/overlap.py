"""The data-parallel communication that torch's FSDP2 and pipelines hide.

What the back-ends on FSDP2 have in common: no file says it, so a strategy must say what runs.
"""

from __future__ import annotations

from typing import Any

from planner.backends.rules.rule import RuleInput, mixtures
from planner.strategy.strategy import Strategy

FSDP2 = (
    "torch 2.13.0 distributed/fsdp/_fully_shard/_fsdp_param_group.py: prefetch, reduce-scatter in the backward pass;"
    " distributed/pipelining/stage.py: perform_reduce_grad"
)
"""Where torch does it: always, but for the gradients of a pipeline."""


def data_parallel(given: RuleInput) -> bool:
    """Whether several ranks work for the same parameters, dense ones or experts."""
    s = given.strategy
    return s.dp * s.cp > 1 or (bool(mixtures(given.model)) and s.edp > 1)


def fsdp2_overlap(given: RuleInput) -> str | None:
    """Does the strategy say what FSDP2 hides: gathers always, gradients where no pipeline reduces them at the end?"""
    s = given.strategy
    if not data_parallel(given):
        return None
    if s.overlap_grad_reduce != (s.pp == 1):
        return (
            "with a pipeline, gradients are reduced behind the last backward pass: overlap_grad_reduce must be off"
            if s.pp > 1
            else "FSDP2 always reduces gradients under the backward pass: overlap_grad_reduce must be on"
        )
    if s.zero_stage and not s.overlap_param_gather:
        return "FSDP2 always gathers parameters ahead: overlap_param_gather must be on"
    return None


def fsdp2_spelling(s: Strategy, given: RuleInput) -> dict[str, Any]:
    """The overlap switches that mean nothing, as FSDP2 would have them."""
    changes: dict[str, Any] = {}
    alone = not data_parallel(given)
    if alone:
        changes["overlap_grad_reduce"] = s.pp == 1
    if alone or s.zero_stage == 0:
        changes["overlap_param_gather"] = True
    return changes


def expert_overlap(given: RuleInput) -> str | None:
    """Is the exchange of routed tokens left uncovered?"""
    s = given.strategy
    return "nothing covers the exchange of routed tokens: overlap_ep must be off" if s.overlap_ep and s.ep > 1 else None


def plain_spelling(s: Strategy) -> dict[str, Any]:
    """Switches of axes of one rank, and of a pipeline of one stage."""
    changes: dict[str, Any] = {}
    if s.tp == 1:
        changes |= {"sp": False, "overlap_tp": False}
    if s.cp == 1:
        changes["cp_kind"] = "none"
    if s.ep == 1:
        changes |= {"overlap_ep": False, "dispatcher": "alltoall"}
    if s.pp == 1 or s.dp == 1:
        changes["axis_order"] = "tp-cp-ep-dp-pp"
    if s.recompute != "selective":
        changes["recompute_modules"] = ()
    return changes
