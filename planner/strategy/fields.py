"""The fields of a strategy as data: words, values, bounds, what a person may do with each.

``FIELDS`` declares each field once.  What ``--pin``, ``--forbid``, ``--strategy`` and request bodies accept, the
page of the reference and the checks of the search follow from it.  The types stand in
``planner.strategy.strategy.Strategy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from planner.strategy.relief_layers import RECOMPUTE_WORDS
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import DISPATCHERS, AxisOrder, CpKind, RecomputeModule

Value = int | str | bool
FieldKind = Literal["count", "switch", "word", "words"]
"""A whole number; true or false; one of some words; some of them, joined by ``+``."""

LARGEST_COUNT = 10_000_000


class StrategyField(NamedTuple):
    """One field, and what its values are."""

    name: str
    meaning: str
    kind: FieldKind = "count"
    words: tuple[str, ...] = ()
    """Values of a field of words."""
    smallest: int = 1
    largest: int = LARGEST_COUNT
    neutral: Value | None = 1
    """What forbidding it means; None: it is neither an axis nor a switch, and can only be pinned."""
    aliases: tuple[str, ...] = ()
    """Short words that the field uses for it, accepted wherever its name is."""
    is_pinnable: bool = True
    """Whether the search can hold it fast; what is not is decided by the search alone."""


def _switch(name: str, meaning: str, *aliases: str) -> StrategyField:
    return StrategyField(name, meaning, "switch", neutral=False, aliases=aliases)


FIELDS = (
    StrategyField("tp", "tensor parallelism: ways in which each matmul is split"),
    _switch("sp", "sequence parallelism of norms and routing inside a tp group", "sequence_parallel"),
    StrategyField("cp", "context parallelism: ways in which the sequence is split"),
    StrategyField(
        "cp_kind",
        "how keys and values travel under cp: passed around a ring, or exchanged (Ulysses)",
        "word",
        get_args(CpKind),
        neutral="none",
    ),
    StrategyField("ep", "expert parallelism: ways in which the experts are dealt"),
    StrategyField("etp", "tensor parallelism inside an expert"),
    StrategyField("pp", "pipeline stages", aliases=("num_stages",)),
    StrategyField("vpp", "model chunks (virtual stages) a device", aliases=("vp",)),
    StrategyField("dp", "data parallelism, dp_replicate x dp_shard; derived"),
    StrategyField("dp_replicate", "data-parallel replicas of the sharded group (HSDP)", aliases=("hsdp",)),
    StrategyField("dp_shard", "ranks over which ZeRO shards, besides cp", neutral=None, aliases=("fsdp",)),
    StrategyField("micro_batch_size", "samples of a micro-batch", neutral=None, aliases=("mbs",)),
    StrategyField("num_microbatches", "micro-batches a step", neutral=None, aliases=("gradient_accumulation_steps",)),
    StrategyField(
        "schedule",
        "order of forward and backward work in the pipeline",
        "word",
        get_args(ScheduleName),
        neutral="1f1b",
    ),
    StrategyField(
        "microbatch_group_size",
        "interleaved only: micro-batches that a chunk runs before the next one; 0 = none",
        smallest=0,
        neutral=0,
    ),
    StrategyField(
        "zero_stage",
        "0 replicated states, 1 optimizer sharded, 2 + gradients, 3 + parameters (FSDP)",
        smallest=0,
        largest=3,
        neutral=0,
        aliases=("zero",),
    ),
    StrategyField(
        "recompute",
        "what the backward pass computes again, and in which layers (below)",
        "word",
        RECOMPUTE_WORDS,
        neutral="none",
    ),
    StrategyField(
        "recompute_modules",
        "selective only: which modules",
        "words",
        get_args(RecomputeModule),
        neutral=None,
        is_pinnable=False,
    ),
    _switch("optimizer_offload", "optimizer states in host memory", "offload"),
    _switch("activation_offload", "kept activations in host memory; of which layers: below"),
    _switch("overlap_grad_reduce", "gradient reduction beside the backward pass"),
    _switch("overlap_param_gather", "parameter gathering beside the forward pass"),
    _switch("overlap_tp", "tp communication beside the matmul next to it"),
    _switch("overlap_ep", "expert exchange beside another micro-batch's compute"),
    StrategyField(
        "dispatcher",
        "how routed tokens reach their experts: once for each (alltoall), all to all ranks (allgather), or once a node"
        " and device (DeepEP, HybridEP)",
        "word",
        DISPATCHERS,
        neutral="alltoall",
    ),
    _switch("fp8_parameters", "weights of layers stored and gathered in 8 bit, with precision fp8"),
    StrategyField(
        "axis_order",
        "order of the axes over the ranks, innermost first",
        "word",
        get_args(AxisOrder),
        neutral="tp-cp-ep-dp-pp",
    ),
)
FIELD: dict[str, StrategyField] = {each.name: each for each in FIELDS}
"""By name."""
ALIASES: dict[str, str] = {alias: each.name for each in FIELDS for alias in each.aliases}
"""Short word -> name."""
KEYS = tuple(FIELD)
"""Every field that a person can write, the derived ``dp`` included."""
PINNABLE = tuple(each.name for each in FIELDS if each.is_pinnable)
FORBIDDABLE = tuple(each.name for each in FIELDS if each.is_pinnable and each.neutral is not None)
DERIVED_FIELDS = frozenset({"dp", "num_microbatches", "microbatch_group_size"})
"""Strategy fields that follow from the others; sentences leave them out."""
OF_RELIEF = ("recompute", "activation_offload")
"""Fields whose words also say which layers they mean (``planner.strategy.relief_layers``)."""


def full_name(word: str) -> str:
    """The field that a word means; the word itself where it is no short one."""
    return ALIASES.get(word, word)


def values_of(name: str) -> tuple[Value, ...]:
    """Every value of a field with few of them; none of a degree or a count."""
    field = FIELD.get(name)
    if field is None:
        return ()
    if field.kind == "switch":
        return (False, True)
    if field.kind == "count" and field.largest < LARGEST_COUNT:
        return tuple(range(field.smallest, field.largest + 1))
    return field.words if field.kind == "word" else ()


def told_fields(names: Sequence[str]) -> tuple[str, ...]:
    """The fields that a person chose; derived ones only where nothing else differs."""
    return tuple(name for name in names if name not in DERIVED_FIELDS) or tuple(names)


def value_words(value: object) -> str:
    """A strategy value as a person writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "+".join(str(each) for each in value) or "none"
    return str(value)
