"""Which values may each part of a strategy take?  The declared space, narrowed by pins, forbids and target.

Degrees range over *all* divisors, not only powers of two.  Four switches take one value where the target can run it,
because it is never worse in the cost model (overlap costs at most what it hides): ``overlap_tp`` (on with sp),
``overlap_ep``, ``overlap_grad_reduce`` and ``overlap_param_gather``; pin them to see the other value.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import get_args

from planner.memory.activations import Relief
from planner.problem import Constraints, Target
from planner.strategy import ScheduleName
from planner.strategy_rows import SCHEDULES
from profiles.validation import Finding, pointer_to, require

VIRTUAL_STAGES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)
"""Chunks a device that interleaving may use; more only adds hops."""
GROUP_FACTORS = {"interleaved": (1, 2), "interleaved_zb": (1,)}
"""Group sizes of the schedules that run micro-batches in groups, in units of pp; torch runs interleaved_zb with pp."""

RELIEFS: tuple[Relief, ...] = (
    Relief(),
    Relief("selective", ("norm", "activation")),
    Relief("selective", ("norm", "mlp")),
    Relief("selective", ("norm", "moe")),
    Relief("full"),
    Relief(offload=True),
)
"""Ways to keep less for the backward pass, ordered from cheap to thorough; the first is none."""

ALIASES = {
    "mbs": "micro_batch_size",
    "zero": "zero_stage",
    "vp": "vpp",
    "num_stages": "pp",
    "gradient_accumulation_steps": "num_microbatches",
    "hsdp": "dp_replicate",
    "fsdp": "dp_shard",
    "sequence_parallel": "sp",
    "offload": "optimizer_offload",
}
"""Short words that the field uses for strategy fields; the command line and documents take the same ones."""

PINNABLE = (
    "tp",
    "sp",
    "cp",
    "cp_kind",
    "ep",
    "etp",
    "pp",
    "vpp",
    "dp",
    "dp_replicate",
    "dp_shard",
    "micro_batch_size",
    "num_microbatches",
    "schedule",
    "microbatch_group_size",
    "zero_stage",
    "recompute",
    "optimizer_offload",
    "activation_offload",
    "overlap_grad_reduce",
    "overlap_param_gather",
    "overlap_tp",
    "overlap_ep",
    "axis_order",
)
SWITCHES = (
    "sp",
    "optimizer_offload",
    "activation_offload",
    "overlap_grad_reduce",
    "overlap_param_gather",
    "overlap_tp",
    "overlap_ep",
)
NAMES = {
    "cp_kind": ("none", "ring", "all_to_all"),
    "schedule": get_args(ScheduleName),
    "recompute": ("none", "selective", "full"),
    "axis_order": ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"),
}
NEUTRAL: dict[str, int | str | bool] = {
    "cp_kind": "none",
    "zero_stage": 0,
    "recompute": "none",
    "schedule": "1f1b",
    "microbatch_group_size": 0,
    "axis_order": "tp-cp-ep-dp-pp",
}
"""What forbidding a field means, where it is not 1 or False."""
NEVER_FORBIDDEN = ("dp_shard", "micro_batch_size", "num_microbatches")
"""Counts without a neutral value: a forbid can only mean an axis or a switch, these can only be pinned."""


@dataclass(frozen=True, slots=True)
class TargetSpace:
    """What a back-end can run, as far as whole columns go; its own rules decide the rest."""

    schedules: tuple[ScheduleName, ...]
    cp_kinds: tuple[str, ...] = ("ring", "all_to_all")
    zero_stages: tuple[int, ...] = (0, 1, 2, 3)
    zero_stages_with_pipeline: tuple[int, ...] = (0, 1, 2, 3)
    axis_orders: tuple[int, ...] = (0, 1)
    expert_tensor_parallel: bool = True
    optimizer_offload: bool = True
    activation_offload: bool = True
    overlap_ep: tuple[bool, ...] = (True,)
    overlap_tp: bool = True
    overlap_data: tuple[tuple[bool, bool], ...] = ((True, True),)
    """(overlap_grad_reduce, overlap_param_gather) to try; several where a back-end's rules tie them to other fields."""
    overlap_grad_with_pipeline: bool = True
    selective_recompute: bool = True
    uniform_recompute: bool = False
    """Whether every chunk recomputes the same number of layers (a selective policy and offload: all of them)."""
    even_layers: bool = False
    """Whether every chunk holds equally many layers and one policy serves all of them."""
    whole_recompute: bool = False
    """Whether full recompute, too, is every layer or none; with ``uniform_recompute``."""


_MEGATRON = TargetSpace(schedules=("1f1b", "interleaved"), overlap_ep=(True, False), uniform_recompute=True)

TARGET_SPACES: dict[Target, TargetSpace] = {
    "any": TargetSpace(schedules=SCHEDULES),
    "megatron": _MEGATRON,
    "megatron-bridge": _MEGATRON,
    "accelerate": TargetSpace(
        schedules=("1f1b",),
        cp_kinds=("ring",),
        axis_orders=(0,),
        expert_tensor_parallel=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        overlap_data=((True, True), (True, False), (False, False)),
        selective_recompute=False,
    ),
    "mindspeed": TargetSpace(
        schedules=("1f1b", "interleaved", "dualpipev"),
        overlap_ep=(True, False),
        overlap_data=((True, True), (False, False)),
        uniform_recompute=True,
    ),
    "deepspeed": TargetSpace(
        schedules=("1f1b", "dualpipev"),
        cp_kinds=("all_to_all",),
        zero_stages_with_pipeline=(0, 1),
        axis_orders=(0,),
        expert_tensor_parallel=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_data=((True, True), (True, False), (False, False)),
        selective_recompute=False,
    ),
    "native": TargetSpace(
        schedules=SCHEDULES,
        axis_orders=(0,),
        expert_tensor_parallel=False,
        optimizer_offload=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        overlap_grad_with_pipeline=False,
    ),
    "maxtext": TargetSpace(
        schedules=("1f1b", "gpipe"),
        zero_stages=(0, 1, 3),
        zero_stages_with_pipeline=(0, 1, 3),
        axis_orders=(0,),
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        even_layers=True,
    ),
    "torchtitan": TargetSpace(
        # Not those that split backward passes: they fail on compiled layers, rule torchtitan.P6.
        schedules=("1f1b", "gpipe", "interleaved", "looped_bfs"),
        cp_kinds=("ring",),
        zero_stages=(0, 2, 3),
        zero_stages_with_pipeline=(0, 1),
        axis_orders=(0,),
        optimizer_offload=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_grad_with_pipeline=False,
        uniform_recompute=True,
        whole_recompute=True,
    ),
}


def checked_pins(constraints: Constraints) -> dict[str, int | str | bool]:
    """Pins and forbids as one table field -> value.  Raises FindingsInvalid at every unknown or clashing name."""
    findings: list[Finding] = []
    pins: dict[str, int | str | bool] = {}
    for name, value in constraints.pins.items():
        field, pointer = ALIASES.get(name, name), f"/pins{pointer_to(name)}"
        if field not in PINNABLE:
            findings.append(_unknown(name, pointer))
            continue
        problem = _value_problem(field, value)
        if problem:
            findings.append(Finding(pointer, problem, f"hold {field} at such a value, or drop the pin"))
        pins[field] = value
    for index, name in enumerate(constraints.forbids):
        field, pointer = ALIASES.get(name, name), f"/forbids/{index}"
        if field not in PINNABLE:
            findings.append(_unknown(name, pointer))
            continue
        if field in NEVER_FORBIDDEN:
            wrong = f"{name} cannot be forbidden, only pinned: it is neither an axis nor a switch"
            findings.append(Finding(pointer, wrong, f"pin {field} instead"))
            continue
        value = NEUTRAL.get(field, False if field in SWITCHES else 1)
        if field in pins and pins[field] != value:
            wrong = f"{field} is pinned to {pins[field]} and forbidden at once"
            findings.append(Finding(f"/pins{pointer_to(field)}", wrong, "keep one of the two", ("/forbids",)))
        pins[field] = value
    require(findings, "/constraints")
    return pins


def _value_problem(field: str, value: int | str | bool) -> str:
    if field in NAMES:
        return "" if value in NAMES[field] else f"{field}={value}: one of {', '.join(NAMES[field])}"
    if field in SWITCHES:
        return "" if isinstance(value, bool) else f"{field}={value}: true or false"
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < (0 if field in ("zero_stage", "microbatch_group_size") else 1)
    ):
        return f"{field}={value}: a positive whole number"
    return f"zero_stage={value}: 0, 1, 2 or 3" if field == "zero_stage" and value > 3 else ""


def _unknown(name: str, pointer: str) -> Finding:
    close = get_close_matches(name, (*PINNABLE, *ALIASES), n=1)
    known = f"did you mean {close[0]}?" if close else f"fields that can be pinned: {', '.join(PINNABLE)}"
    return Finding(pointer, f"unknown strategy field {name!r}", known)
