"""The one spelling of a strategy's switches under Megatron-LM 0.19.2: what reading the flags gives back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.backends.rules.rule import RuleInput, used_kinds
from planner.predict.cost.as_run import BEFORE_BLACKWELL
from planner.strategy.strategy import Strategy


def overlap_tp_problem(given: RuleInput) -> str | None:
    """Why ``--tp-comm-overlap`` would hide nothing here; None where it does what it says.

    core/extensions/transformer_engine.py:922-932: a linear layer whose buffer is not qkv, proj, fc1 or fc2 sets
    ``tp_comm_overlap`` of the configuration that all layers share to False, and latent attention has such layers.
    training/arguments.py:1413-1436: on Hopper and before CUDA_DEVICE_MAX_CONNECTIONS is 1 for tensor parallelism and
    larger for expert overlap, "which depends on which parallelization you want to prioritize".
    """
    s = given.strategy
    if any(kind.attention.kind == "mla" for kind in used_kinds(given.model)):
        return "Transformer Engine's linear layers of latent attention switch it off for the whole model"
    if s.overlap_ep and given.architecture.lower() in BEFORE_BLACKWELL:
        return "before Blackwell it wants one hardware queue, overlap_ep 32, and the files set 32"
    return None


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """As ``plain_switches``, and ``overlap_tp`` off where it would hide nothing.

    The cost model does not count it there (``overlaps_latent_tp`` and ``overlaps_tp_beside_ep`` of ``physics``), so
    that what is priced is what is written.
    """
    plain = plain_switches(s, given)
    # Without sp the release refuses it (rule A18), which a spelling must not hide.
    said = plain.overlap_tp and plain.sp
    return replace(plain, overlap_tp=False) if said and overlap_tp_problem(given) else plain


def plain_switches(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others, as the flags give them back."""
    changes: dict[str, Any] = {}
    if s.cp == 1:
        changes["cp_kind"] = "none"
    if s.tp == 1:
        changes |= {"sp": False, "overlap_tp": False}
    if s.ep == 1:
        changes["dispatcher"] = "alltoall"
    if s.zero_stage == 0:
        changes |= {"overlap_param_gather": False, "dp_replicate": 1, "dp_shard": s.dp}
    if given.workload.precision != "fp8":
        changes["fp8_parameters"] = False
    if s.recompute != "selective":
        changes["recompute_modules"] = ()
    if s.pp == 1 and s.vpp == 1:
        changes["schedule"] = "1f1b"
    interleaved = s.vpp > 1 and s.schedule == "interleaved"
    changes["microbatch_group_size"] = (s.microbatch_group_size or s.pp) if interleaved else 0
    return replace(s, **changes)
