"""The sharding keys: what the cost of one layer depends on.

Thousands of strategies share a few hundred sharding keys, so costs are computed once a key, for all keys at once.
Shape letter: K keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.model.flops import attention_context
from planner.model.operator import Operator
from planner.predict.collective import Groups
from planner.predict.hottest_share import hottest_share
from planner.predict.packed_rows import PackedRows
from planner.question.routing import EVEN, ExpertLoad
from planner.strategy.strategy import DISPATCHERS
from solver.arrays import Array

KEY_COLUMNS = ("tp", "sp", "cp", "ring", "ep", "etp", "micro_batch_size", "overlap_tp", "overlap_ep", "dispatcher")
"""Strategy columns that a layer's cost depends on; ``ring`` is 1 for ring context parallelism, 0 for all_to_all."""


@dataclass(frozen=True)
class LayerKeys:
    """The sharding columns, each float64[K] (``sp``, ``ring`` and ``overlap_*`` are 0 or 1)."""

    tp: Array
    sp: Array
    cp: Array
    ring: Array
    ep: Array
    etp: Array
    micro_batch_size: Array
    overlap_tp: Array
    overlap_ep: Array
    sequence_length: int
    routing: ExpertLoad = EVEN
    """How unevenly tokens reach the experts."""
    dispatcher: Array = field(default_factory=lambda: np.zeros(1))
    """Index into ``DISPATCHERS``; one value may stand for all keys."""
    spread: Array = field(default_factory=lambda: np.zeros(1))
    """How much more the fullest rank has of items that samples have unequal numbers of (``uneven_items``)."""

    def __post_init__(self) -> None:
        """One value for all keys becomes one a key."""
        for name in ("dispatcher", "spread"):
            object.__setattr__(self, name, np.broadcast_to(getattr(self, name), np.shape(self.tp)))

    @property
    def once(self) -> NDArray[np.bool_]:
        """Keys whose tokens are sent once a node and device, by DeepEP or HybridEP: [K]."""
        return np.asarray(self.dispatcher >= DISPATCHERS.index("deepep"))

    @property
    def gathered(self) -> NDArray[np.bool_]:
        """Keys whose experts gather the tokens of all ranks: [K]."""
        return np.asarray(self.dispatcher == DISPATCHERS.index("allgather"))

    def slice(self, start: int, stop: int) -> LayerKeys:
        """Keys ``start`` to ``stop``."""
        return replace(self, **{name: getattr(self, name)[start:stop] for name in (*KEY_COLUMNS, "spread")})

    @property
    def source(self) -> LayerKeys:
        """The keys of what runs over the encoder's sequence: these, where it is as long as the decoder's."""
        return self

    @cached_property
    def tokens(self) -> Array:
        """Tokens of one micro-batch on one device, before sequence parallelism: [K]."""
        return self.micro_batch_size * self.sequence_length / self.cp

    @cached_property
    def sequence_split(self) -> Array:
        """Ways in which norms and routing split the tokens further: tp under sp, else 1."""
        return np.where(self.sp > 0, self.tp, 1.0)

    def hottest(self, num_experts: int) -> Array | float:
        """Tokens of the hottest expert-parallel rank over the mean: [K], or 1 where all are alike."""
        if self.routing.kind == "even" or num_experts == 0:
            return 1.0
        return hottest_share(self.routing, num_experts, self.ep)

    def context(self, window: int | None, *, causal: bool) -> Array | float:
        """Tokens that a token of a sequence attends to on the slowest rank: one number, or [K] of packed documents."""
        return attention_context(self.sequence_length, window, causal=causal)

    @property
    def longest(self) -> float:
        """Length of the rows at whose rate fused attention runs."""
        return float(self.sequence_length)

    @cached_property
    def tp_groups(self) -> Groups:
        """Ranks of one tensor-parallel group: neighbours."""
        return Groups(self.tp, np.ones(len(self)))

    @cached_property
    def cp_groups(self) -> Groups:
        """Ranks that share a sequence."""
        return Groups(self.cp, self.tp)

    @cached_property
    def etp_groups(self) -> Groups:
        """Ranks that share an expert: neighbours."""
        return Groups(self.etp, np.ones(len(self)))

    def __len__(self) -> int:
        """Number of keys."""
        return len(self.tp)


@dataclass(frozen=True)
class PackedKeys(LayerKeys):
    """Keys of sequences that hold several documents.

    ``uneven`` [K]: attention of the slowest rank over that of a typical one, less 1.
    """

    documents: PackedRows = field(kw_only=True)
    uneven: Array = field(kw_only=True)

    def slice(self, start: int, stop: int) -> PackedKeys:
        """Keys ``start`` to ``stop``."""
        columns = {name: getattr(self, name)[start:stop] for name in (*KEY_COLUMNS, "spread", "uneven")}
        return replace(self, **columns)

    def context(self, window: int | None, *, causal: bool) -> Array | float:
        """Tokens that a token of a sequence attends to in its document on the slowest rank: [K]."""
        mean = self.documents.row_context(window, causal=causal)
        return mean * (1.0 + self.documents.window_share(window) * self.uneven)

    @property
    def longest(self) -> float:
        """Length of the documents at whose rate fused attention runs."""
        return self.documents.longest


@dataclass(frozen=True)
class SourcedKeys(LayerKeys):
    """Keys of a decoder beside an encoder whose sequence has another length."""

    source_length: int = field(kw_only=True)

    @property
    def source(self) -> LayerKeys:
        """The keys of what runs over the encoder's sequence, which is whole on every rank of cp."""
        columns = {name: getattr(self, name) for name in KEY_COLUMNS} | {"cp": np.ones_like(self.cp)}
        return LayerKeys(**columns, sequence_length=self.source_length, routing=self.routing)


def whole_keys(keys: LayerKeys) -> LayerKeys:
    """The keys of sequences of one document each."""
    columns = {name: getattr(keys, name) for name in (*KEY_COLUMNS, "spread")}
    return LayerKeys(**columns, sequence_length=keys.sequence_length, routing=keys.routing)


def rows_of(operator: Operator, keys: LayerKeys) -> LayerKeys:
    """The keys of the tokens that are an operator's rows: of the encoder's sequence where it says so.

    Cross-attention has the layer's own rows, and sees the others.
    """
    return keys.source if operator.of_source and operator.op_class != "attention" else keys


def seen_tokens(operator: Operator, keys: LayerKeys) -> int:
    """Length of the sequence that an attention sees."""
    return keys.source.sequence_length if operator.of_source else keys.sequence_length
