"""The operator class of PyTorch names such as ``aten::addmm``, and the arguments that hold the sizes.

A rule says the class, whether the name is the backward half, which arguments hold the operands, and whether the name
only counts where nothing inside it is recognised (``leaf_only``: ``aten::linear`` runs ``aten::addmm``, whose
arguments are the product itself).  Argument positions follow the operators' schemas.
Source: pytorch/pytorch aten/src/ATen/native/native_functions.yaml; flash-attn's registered operators.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from profiles.shipped_tables import shipped_table


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """How to read one operator: ``first`` = position of its first operand, ``causal`` = position of that switch."""

    operator: str
    layout: str = "elements"
    first: int = 0
    causal: int | None = None
    backward: bool = False
    leaf_only: bool = False


_FILE = ("profiles.importing", "torch_operators.toml")
_PATTERNS: tuple[tuple[re.Pattern[str], OperatorRule], ...] = (
    (re.compile(r"^flash_attn\w*::\w*varlen\w*backward|^flash_attn\w*::\w*varlen\w*bwd"),
     OperatorRule("attention", "bshd", 1, None, True)),
    (re.compile(r"^flash_attn\w*::.*(backward|bwd)"), OperatorRule("attention", "bshd", 1, None, True)),
    (re.compile(r"^flash_attn\w*::"), OperatorRule("attention", "bshd")),
    (re.compile(r"^(xformers|xformers_flash)\w*::.*(backward|bwd)"), OperatorRule("attention", "bshd", 1, None, True)),
    (re.compile(r"^(xformers|xformers_flash)\w*::.*(attention|flash_fwd)"), OperatorRule("attention", "bshd")),
    (re.compile(r"^\w*(Flash|Fused|DotProduct)\w*Att\w*Backward\w*$"),
     OperatorRule("attention", "none", backward=True)),
    (re.compile(r"^\w*(FlashAttn|FusedAttn)\w*Func\w*$"), OperatorRule("attention", "none")),
)  # fmt: skip


@lru_cache(maxsize=8192)
def operator_rule(name: str) -> OperatorRule | None:
    """The rule of one operator by the name that the profiler gives it; None where the name is not a known operator."""
    space, _, plain = name.rpartition("::")
    if space not in ("aten", ""):
        return _by_pattern(name)
    found = _exact(plain) if space == "aten" else None
    return found or _by_pattern(name)


@lru_cache(maxsize=8192)
def point_wise(name: str) -> bool:
    """Whether an operator without a rule works element by element."""
    plain = name.rpartition("::")[2]
    return plain.removeprefix("_foreach_").rstrip("_").removesuffix(".out") in _names("point_wise")


@lru_cache(maxsize=8192)
def moves_no_data(name: str) -> bool:
    """Whether an operator only makes a view, allocates, or reads one value: on a CPU its time is that of the call."""
    return name.rpartition("::")[2].rstrip("_") in _names("no_work")


def _exact(plain: str) -> OperatorRule | None:
    rules = _rules()
    if plain in rules["exact"]:
        return rules["exact"][plain]
    bare = plain.rstrip("_")
    if bare in _names("activations"):
        return OperatorRule("activation")
    if bare.endswith("_backward") and bare.removesuffix("_backward") in _names("activations"):
        return OperatorRule("activation", backward=True)
    if bare in _names("convolutions"):
        return OperatorRule("convolution", "convolution")
    return rules["in_place_too"].get(bare)


@cache
def _rules() -> dict[str, dict[str, OperatorRule]]:
    table = shipped_table(*_FILE)
    return {key: {name: OperatorRule(**row) for name, row in table[key].items()} for key in ("exact", "in_place_too")}


@cache
def _names(key: str) -> frozenset[str]:
    return frozenset(shipped_table(*_FILE)["names"][key].split())


def _by_pattern(name: str) -> OperatorRule | None:
    return next((rule for pattern, rule in _PATTERNS if pattern.search(name)), None)
