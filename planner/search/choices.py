"""Which values may each part of a strategy take?  The declared space, narrowed by pins and forbids.

Degrees range over *all* divisors, not only powers of two.  Four switches take one value where the back-end can run it,
because it is never worse in the cost model (overlap costs at most what it hides): ``overlap_tp`` (on with sp),
``overlap_ep``, ``overlap_grad_reduce`` and ``overlap_param_gather``; pin them to see the other value.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import get_args

from planner.backends.rules.legality import EMPTY_ENDS
from planner.problem import Constraints
from planner.relief_layers import RECOMPUTE_WORDS, WHERE_NEEDED, is_recompute_word, policies
from planner.strategy import ScheduleName
from profiles.validation import Finding, pointer_to, require

VIRTUAL_STAGES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)
"""Chunks a device that interleaving may use beside the divisors of a device's layers (``virtual_stages``)."""
MOST_VIRTUAL_STAGES = 24
"""More chunks a device only add hops and launches: the published runs that we know of have up to 20."""


@cache
def virtual_stages(num_layers: int, pp: int, *, empty_ends: bool = False) -> tuple[int, ...]:
    """Chunks a device that interleaving may use: ``VIRTUAL_STAGES``, and every divisor of the layers of a device.

    The divisors are those of ``ceil(num_layers / pp)``: 9 for 126 layers on 14 stages, 14 for 56 on 4, 24 for 96 on 4.
    The others deal uneven chunks.  Never more chunks than layers, two more with ``empty_ends`` (94 layers on
    32 stages: 3), nor than ``MOST_VIRTUAL_STAGES``.
    """
    each, most = -(-num_layers // pp), num_layers + EMPTY_ENDS * empty_ends
    divisors = (number for number in range(2, min(each, MOST_VIRTUAL_STAGES) + 1) if each % number == 0)
    return tuple(sorted(vpp for vpp in {*VIRTUAL_STAGES, *divisors} if vpp * pp <= most))


OF_RELIEF = ("recompute", "activation_offload")
"""Fields whose words also say which layers they mean (``planner.relief_layers``)."""

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
    "recompute": RECOMPUTE_WORDS,
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


def checked_pins(constraints: Constraints) -> dict[str, int | str | bool]:
    """Pins and forbids as one table field -> value.  Raises FindingsInvalid at every unknown or clashing name.

    Of recompute and offload the policy; which layers use it: ``planner.relief_layers.relief_layers``.
    """
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
        pins[field] = policies({field: value})[field]
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
    if (field, value) == ("activation_offload", WHERE_NEEDED) or (
        field == "recompute" and is_recompute_word(str(value))
    ):
        return ""
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
