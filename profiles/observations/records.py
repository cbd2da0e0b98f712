"""The four kinds of observation, in seconds and bytes.

Sizes of collectives follow one convention, the full logical tensor on one rank: all_reduce and broadcast the buffer,
all_gather the output, reduce_scatter the input, all_to_all what one rank sends in total, send_recv the message.
A bandwidth is never stored for a collective: it follows from size, group and time
(``profiles.observations.bandwidth``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from profiles.observations.timing import Statistic, Timing

Scalar = str | int | float | bool
Phase = Literal["forward", "backward", "dgrad", "wgrad", "step", "unknown"]
CollectiveOperation = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast", "reduce", "gather", "scatter",
    "barrier", "unknown",
]  # fmt: skip
Launch = Literal["back_to_back", "blocking", "graph", "in_situ", "unknown"]
LinkKind = Literal[
    "device_to_device", "host_to_device", "device_to_host", "device_memory", "host_memory", "network", "loopback"
]
Direction = Literal["one_way", "both_ways", "unknown"]

SHAPE_NAMES = (
    "m", "n", "k", "num_groups", "batch_size", "query_length", "key_length", "num_heads", "num_kv_heads", "head_dim",
    "value_head_dim", "window", "num_tokens", "hidden_size", "ffn_hidden_size", "num_experts", "experts_per_token",
    "vocab_size", "tensor_parallel", "expert_parallel", "num_layers", "num_elements", "num_bytes",
)  # fmt: skip
"""Sizes that an operator's time may depend on; anything else goes to ``detail``."""


@dataclass(frozen=True, slots=True)
class OperatorObservation:
    """One operator at one shape.  ``operator`` is the class, ``name`` what the source calls it.

    Classes: matmul, grouped_matmul, attention, decode_attention, norm, rotary, activation, embedding, cross_entropy,
    router, permute (tokens sorted by expert, or back), moe (a whole expert layer), expert_dispatch, expert_combine,
    elementwise, softmax, dropout, optimizer, copy, convolution, collective (a kernel of unknown size), module (named
    piece of a model), kernel (not attributed to an operator), other.  m, n, k of a matmul are those of the product as
    it ran, [m, k] x [k, n]: the input's gradient of a forward (m, n, k) is (m, k, n), the weight's (n, k, m).  Those of
    a grouped_matmul are the forward's, m the mean rows of one group.
    ``timing`` is None when the case failed (``ok`` False, ``error`` says how): a failure is data.
    """

    operator: str
    name: str
    timing: Timing | None
    phase: Phase = "unknown"
    dtype: str = ""
    shape: dict[str, int] = field(default_factory=dict)
    causal: bool | None = None
    weights_bytes: int | None = None
    activation_bytes: int | None = None
    peak_bytes: int | None = None
    detail: dict[str, Scalar] = field(default_factory=dict)
    ok: bool = True
    error: str = ""
    row: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown shape name, a size below one, or a success without a time."""
        for name, size in self.shape.items():
            if name not in SHAPE_NAMES:
                raise ValueError(f"'{name}' is not a shape name; put it into detail")
            if not 0 <= size < 2**62:
                raise ValueError(f"{name} is {size}; a size is a whole number from 0 to 2^62")
        if self.ok and self.timing is None:
            raise ValueError("an operator that ran has a time")


@dataclass(frozen=True, slots=True)
class CollectiveObservation:
    """One collective of one size over one group shape.

    ``group_size`` ranks, ``devices_per_node`` of them on each of ``num_nodes`` nodes, ``stride`` ranks apart;
    ``concurrent_groups`` such groups ran at once (1 = alone, None = unknown).
    """

    operation: CollectiveOperation
    size_bytes: int
    group_size: int | None
    timing: Timing | None
    dtype: str = ""
    num_nodes: int | None = None
    devices_per_node: int | None = None
    stride: int | None = None
    concurrent_groups: int | None = None
    in_place: bool | None = None
    reduction: str = ""
    root: int | None = None
    launch: Launch = "unknown"
    algorithm: str = ""
    protocol: str = ""
    num_channels: int | None = None
    num_wrong: int | None = None
    detail: dict[str, Scalar] = field(default_factory=dict)
    ok: bool = True
    error: str = ""
    row: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for impossible sizes or groups, or a success without a time."""
        if not 0 <= self.size_bytes < 2**62:
            raise ValueError(f"size_bytes is {self.size_bytes}")
        if self.group_size is not None and not 1 <= self.group_size < 2**31:
            raise ValueError(f"group_size is {self.group_size}")
        if self.ok and self.timing is None:
            raise ValueError("a collective that ran has a time")


@dataclass(frozen=True, slots=True)
class LinkObservation:
    """One link or memory path: one-way bytes a second (``both_ways`` = the sum of the two), or its latency.

    ``source`` and ``target`` are ends without names of hosts: ``device:0``, ``host:0``, ``nic:1``, ``node:0``.
    """

    kind: LinkKind
    source: str
    target: str
    direction: Direction = "unknown"
    size_bytes: int | None = None
    bandwidth_bytes_per_s: float | None = None
    latency_s: float | None = None
    statistic: Statistic = "unknown"
    num_samples: int | None = None
    method: str = ""
    detail: dict[str, Scalar] = field(default_factory=dict)
    ok: bool = True
    error: str = ""
    row: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for NaN, negative numbers, or a success that measured nothing."""
        for value in (self.bandwidth_bytes_per_s, self.latency_s):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{value} is not a finite number from 0")
        if self.ok and self.bandwidth_bytes_per_s is None and self.latency_s is None:
            raise ValueError("a link observation needs a bandwidth or a latency")


@dataclass(frozen=True, slots=True)
class IterationObservation:
    """One training step (or a report of its memory): the end-to-end truth that calibration uses."""

    timing: Timing | None
    iteration: int | None = None
    rank: int | None = None
    model: str = ""
    strategy: dict[str, Scalar] = field(default_factory=dict)
    num_devices: int | None = None
    global_batch_size: int | None = None
    micro_batch_size: int | None = None
    sequence_length: int | None = None
    reported_flops_per_s_per_device: float | None = None
    allocated_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    out_of_memory: bool = False
    detail: dict[str, Scalar] = field(default_factory=dict)
    ok: bool = True
    error: str = ""
    row: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError when there is neither a time nor a memory reading nor a failure."""
        memory = (self.allocated_bytes, self.peak_allocated_bytes, self.reserved_bytes, self.peak_reserved_bytes)
        if self.ok and self.timing is None and all(reading is None for reading in memory):
            raise ValueError("an iteration that ran has a time or a memory reading")


Observation = OperatorObservation | CollectiveObservation | LinkObservation | IterationObservation
