"""The values that each part of a strategy may take: the declared space, narrowed by pins and forbids.

Degrees range over *all* divisors, not only powers of two.  Five switches take one value where the back-end can run it,
because it is never worse in the cost model (overlap costs at most what it hides): ``overlap_tp`` (on with sp),
``overlap_ep``, ``overlap_grad_reduce``, ``overlap_param_gather`` and ``fp8_parameters``; pin them to see the other
value.  ``dispatcher`` is the one that the back-end takes for the degrees of the experts and the devices
(docs/decisions/0053); pin it for another.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from planner.backends.rules.legality import EMPTY_ENDS
from planner.question.problem import Constraints
from planner.strategy.fields import ALIASES, FIELD, PINNABLE, full_name
from planner.strategy.relief_layers import WHERE_NEEDED, is_recompute_word, policies
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


def checked_pins(constraints: Constraints) -> dict[str, int | str | bool]:
    """Pins and forbids as one table field -> value.  Raises FindingsInvalid at every unknown or clashing name.

    Of recompute and offload the policy; which layers use it: ``planner.strategy.relief_layers.relief_layers``.
    """
    findings: list[Finding] = []
    pins: dict[str, int | str | bool] = {}
    for name, value in constraints.pins.items():
        field, pointer = full_name(name), f"/pins{pointer_to(name)}"
        if field not in PINNABLE:
            findings.append(_unknown(name, pointer))
            continue
        problem = _value_problem(field, value)
        if problem:
            findings.append(Finding(pointer, problem, f"hold {field} at such a value, or drop the pin"))
        pins[field] = policies({field: value})[field]
    for index, name in enumerate(constraints.forbids):
        field, pointer = full_name(name), f"/forbids/{index}"
        if field not in PINNABLE:
            findings.append(_unknown(name, pointer))
            continue
        neutral = FIELD[field].neutral
        if neutral is None:
            wrong = f"{name} cannot be forbidden, only pinned: it is neither an axis nor a switch"
            findings.append(Finding(pointer, wrong, f"pin {field} instead"))
            continue
        if field in pins and pins[field] != neutral:
            wrong = f"{field} is pinned to {pins[field]} and forbidden at once"
            findings.append(Finding(f"/pins{pointer_to(field)}", wrong, "keep one of the two", ("/forbids",)))
        pins[field] = neutral
    require(findings, "/constraints")
    return pins


def _value_problem(field: str, value: int | str | bool) -> str:
    if (field, value) == ("activation_offload", WHERE_NEEDED) or (
        field == "recompute" and is_recompute_word(str(value))
    ):
        return ""
    declared = FIELD[field]
    if declared.kind == "word":
        return "" if value in declared.words else f"{field}={value}: one of {', '.join(declared.words)}"
    if declared.kind == "switch":
        return "" if isinstance(value, bool) else f"{field}={value}: true or false"
    if isinstance(value, bool) or not isinstance(value, int) or value < declared.smallest:
        return f"{field}={value}: a positive whole number"
    return f"{field}={value}: from {declared.smallest} to {declared.largest}" if value > declared.largest else ""


def _unknown(name: str, pointer: str) -> Finding:
    close = get_close_matches(name, (*PINNABLE, *ALIASES), n=1)
    known = f"did you mean {close[0]}?" if close else f"fields that can be pinned: {', '.join(PINNABLE)}"
    return Finding(pointer, f"unknown strategy field {name!r}", known)
