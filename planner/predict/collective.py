"""The time of a collective, given who takes part and which network they cross.

A group is described by (size, stride) over consecutive device numbers.  At each network level it has
``k`` sub-groups of ``L`` members; the hierarchical ring moves, per device (Hockney model, one-way bandwidth)::

    reduce_scatter = all_gather = sum over levels  (n / L_below) (k - 1) / k / bandwidth  +  steps * latency
    all_reduce                  = 2 x reduce_scatter        (a tree replaces the ring where its latency wins)
    all_to_all                  = sum over levels  n (L - L_below) / size / bandwidth  +  steps * latency
    send_recv                   = n / bandwidth + latency of the level crossed

``n`` is the full logical buffer (all_reduce: the buffer, all_gather: the output, reduce_scatter: the input,
all_to_all: what one rank sends in total).  Levels are chunk-pipelined imperfectly::

    t = longest + (1 - w)(sum - longest),  longest = max over levels j of  (bytes of j + of what shares its link) / b_j

``sum`` is one level after the other, ``longest`` everything at once: a link is never faster than all that crosses it.
What leaves a leaf switch has crossed the same NIC as what stays under it, and behind PCIe everything crosses the
device's slot (``_shares_link``); so a tier that is declared without oversubscription changes no bytes, and levels that
share a NIC never overlap on it.

Ring steps: all members pass chunks on in lockstep, so a ring over nodes takes ``size - 1`` steps of the slowest network
that it crosses.  HF Ultra-Scale sweep, fit part: gathers over 2 and 4 nodes of EFA take 0.7 and 1.5 ms beside their
bytes, in proportion to the 16 and 32 members.  Of many collectives queued behind each other only the passage between
nodes shows (``queued_latency_s``).

Contention: ``NetworkLevel.bandwidth`` is what a device gets when all devices of the node send at once.  Sibling groups
(every other tp, dp, ep group of the mesh) do run at once, so each device has exactly its own share and no more.

Sources: formulas as published by HCCL's algorithm guide (hicann/hccl, coll_algo_intro) and the NCCL performance notes;
``PIPELINING`` is fitted on one published 4x8 B200 all_reduce (stas00/ml-engineering: 22.05 ms between the bounds 16.1
and 26.25 ms); large-message fractions are medians of published bus bandwidths over line rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.strategy.rows import first_of_each
from profiles.levels import NetworkLevel, group_bandwidth_bytes_per_s
from solver.arrays import Array, Ints

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]

PIPELINING = 0.41
BASE_LATENCY_S = 6e-6
"""Launch and protocol set-up of one collective; NCCL's own tables say 6.6 to 14 us (tuning.cc, 2.30.7)."""
FILL_S = 18e-6
FILL_BYTES = 0.25e6
"""Seconds until the chunks of one ring phase stream at the line's rate, and the size at which half of them show:
smaller messages use protocols that need no filling.

Fitted on the all_reduce sweeps of 2, 4 and 8 A100 over NVLink that vTrain ships (VIA-Research/vTrain@f8dda84,
trace/a100): 1 to 32 MiB take 27 to 79 us longer, in two phases, than bytes over bandwidth.  Mean error of 1 to 64 MiB
35-45 % -> 7-15 %.
"""
BEHIND_NICS = ("nic", "fabric")
"""Kinds of level that a device reaches through its NICs."""
LINE_FRACTION: dict[str, float] = {
    "switch": 0.78,
    "mesh": 0.80,
    "torus": 0.85,
    "pcie": 0.75,
    "nic": 0.85,
    "fabric": 0.85,
}
"""Large-message bus bandwidth over line rate by kind of level: H100 all_gather 335-361 of 450 GB/s; EFA and IB rails
.74 to .97; MI300X 313 of 392 GB/s."""
REDUCTION_GAIN = 1.25
"""all_reduce with in-switch reduction over the plain ring on 8 devices: measured 1.23 to 1.31 (H200, B200)."""
FEWEST_FOR_REDUCTION = 5
"""Members from which NCCL reduces in the switch: on H200 4 devices get the ring's 363 GB/s, 5 get 414
(stas00/ml-engineering); AWS' tuner starts at 6 on B200."""
MANY_GROUPS = 256
"""Groups from which looking for those that are alike is quicker than working out each of them."""
ALL_TO_ALL_FRACTION = 0.90
"""all_to_all over all_gather bus bandwidth: 311/361 H200, 563/617 B200, 203/205 A100."""


@dataclass(frozen=True, slots=True)
class Rings:
    """What a ring over some groups takes, whatever it carries: columns of the groups."""

    seconds_a_byte: Array
    """Of one reduce_scatter."""
    latency_s: Array
    tree_latency_s: Array

    def take(self, where: Ints | NDArray[np.bool_]) -> Rings:
        """Some of the groups."""
        return Rings(self.seconds_a_byte[where], self.latency_s[where], self.tree_latency_s[where])


class Groups:
    """Groups of devices, sizes and strides as columns; their rings are worked out once, whatever runs on them."""

    def __init__(self, size: Array, stride: Array) -> None:
        self.size, self.stride = size, stride
        self._known: dict[tuple[bool, int], Rings] = {}

    def rings(self, levels: Sequence[NetworkLevel], op: Collective) -> Rings:
        """The rings on these levels; those of an all_reduce differ where a switch reduces."""
        reduces = op == "all_reduce" and any(level.in_network_reduction for level in levels)
        key = (reduces, id(levels))
        if key not in self._known:
            self._known[key] = _rings_of_each(self.size, self.stride, tuple(levels), reduces)
        return self._known[key]


def _rings_of_each(size: Array, stride: Array, levels: tuple[NetworkLevel, ...], reduces: bool) -> Rings:
    """``_rings``, worked out once for groups that are alike: thousands of strategies have a few dozen."""
    if size.shape != stride.shape or size.ndim != 1:
        return _rings(size, stride, levels, reduces)
    if len(size) == 1:
        return _ring(float(size[0]), float(stride[0]), levels, reduces)
    columns = [size.astype(np.int64), stride.astype(np.int64)]
    if len(size) < MANY_GROUPS or not ((columns[0] == size).all() and (columns[1] == stride).all()):
        return _rings(size, stride, levels, reduces)
    first, index = first_of_each(columns)
    return _rings(size[first], stride[first], levels, reduces).take(index)


@lru_cache(maxsize=4096)
def _ring(size: float, stride: float, levels: tuple[NetworkLevel, ...], reduces: bool) -> Rings:
    """``_rings`` of one group: a search asks for the same ones for every strategy that it solves."""
    return _rings(np.array([size]), np.array([stride]), levels, reduces)


def _rings(group_size: Array, stride: Array, levels: Sequence[NetworkLevel], reduces: bool) -> Rings:
    latency_s = tree_s = np.zeros(np.broadcast_shapes(group_size.shape, stride.shape))
    links = Links()
    below = np.ones(())
    for index, level in enumerate(levels):
        inside = _inside(level, index == len(levels) - 1, group_size, stride)
        parts = inside / below
        line = group_bandwidth_bytes_per_s(level, inside, stride) * LINE_FRACTION[level.kind]
        if reduces and level.in_network_reduction:
            line = line * np.where(inside >= FEWEST_FOR_REDUCTION, REDUCTION_GAIN, 1.0)
        links.add(level, 1.0 / line, (parts - 1) / parts / below)
        # All members pass chunks on in lockstep: a ring steps as slowly as the slowest network that it crosses.
        latency_s = np.where(parts > 1, (inside - 1) * level.latency_s, latency_s)
        tree_s = tree_s + np.ceil(np.log2(np.maximum(parts, 1.0))) * level.latency_s
        below = inside
    # A single device has no levels: the groups keep their shape there too.
    return Rings(np.broadcast_to(links.pipelined_s(), latency_s.shape), latency_s, tree_s)


class Links:
    """The levels that one collective crosses, innermost first, and how their times add up."""

    def __init__(self) -> None:
        self._kinds: list[str] = []
        self._seconds_a_byte: list[Array] = []
        self._link_s: list[Array] = []
        self._total_s: Array = np.zeros(())

    def add(self, level: NetworkLevel, seconds_a_byte: Array, amount: Array, fixed_s: Array | float = 0.0) -> None:
        """A further level: what a device sends on it, at which pace, and seconds beside the bytes."""
        own_s = amount * seconds_a_byte + fixed_s
        self._total_s = self._total_s + own_s
        for index, kind in enumerate(self._kinds):
            if _shares_link(kind, level.kind):
                self._link_s[index] = self._link_s[index] + amount * self._seconds_a_byte[index] + fixed_s
        self._kinds.append(level.kind)
        self._seconds_a_byte.append(seconds_a_byte)
        self._link_s.append(own_s)

    def longest_s(self) -> Array:
        """Seconds of the link that is busy for longest."""
        longest_s: Array = np.zeros(())
        for link_s in self._link_s:
            longest_s = np.maximum(longest_s, link_s)
        return longest_s

    def pipelined_s(self) -> Array:
        """``longest + (1 - w)(sum - longest)``."""
        longest_s = self.longest_s()
        return longest_s + (1 - PIPELINING) * (self._total_s - longest_s)


def _shares_link(inner: str, outer: str) -> bool:
    """Whether what crosses a level of kind ``outer`` has crossed the link of an ``inner`` one before.

    Tiers of switches stand behind the same NICs, and a NIC stands beside the device on its PCIe tree.
    """
    return inner == "pcie" or (inner in BEHIND_NICS and outer in BEHIND_NICS)


def collective_s(
    op: Collective,
    size_bytes: Array,
    group_size: Array,
    stride: Array,
    levels: Sequence[NetworkLevel],
) -> Array:
    """Seconds of one collective; all arguments broadcast.  A group of one, or zero bytes, costs nothing."""
    # Groups often have fewer distinct values than sizes: they keep their own shape and broadcast late.
    size_bytes = np.asarray(size_bytes, dtype=np.float64)
    group_size = np.asarray(group_size, dtype=np.float64)
    stride = np.asarray(stride, dtype=np.float64)
    if op == "send_recv":
        time_s = _send_recv_s(size_bytes, stride, levels)
    elif op == "all_to_all":
        time_s = _all_to_all_s(size_bytes, group_size, stride, levels)
    else:
        return ring_s(op, size_bytes, group_size, Groups(group_size, stride).rings(levels, op))
    return _where_happens(time_s, size_bytes, group_size)


def ring_s(op: Collective, size_bytes: Array, group_size: Array, rings: Rings) -> Array:
    """``collective_s`` of an all_reduce, all_gather or reduce_scatter over groups whose rings are known."""
    passed_s, fill_s = size_bytes * rings.seconds_a_byte, FILL_S * size_bytes / (size_bytes + FILL_BYTES)
    if op == "all_reduce":
        tree_s = 2 * passed_s / 0.92 + 2 * rings.tree_latency_s
        time_s = np.minimum(2 * (passed_s + rings.latency_s), tree_s) + 2.0 * fill_s
    else:
        time_s = passed_s + rings.latency_s + fill_s
    return _where_happens(time_s, size_bytes, group_size)


def _where_happens(time_s: Array, size_bytes: Array, group_size: Array) -> Array:
    return np.where((group_size > 1) & (size_bytes > 0), time_s + BASE_LATENCY_S, 0.0)


def queued_latency_s(group_size: Array, stride: Array, levels: Sequence[NetworkLevel]) -> Array:
    """Seconds that one of many ring collectives queued behind each other adds beside its bytes.

    Their fill overlaps, so only the passage from one instance of a level to the next counts:
    ``sum over levels (k - 1) latency``; a ring over K nodes has K - 1 passages through NICs, whatever switches join
    them, so that a tier behind NICs counts its own passages in each of the ring's parts.
    """
    group_size, stride = np.asarray(group_size, dtype=np.float64), np.asarray(stride, dtype=np.float64)
    latency_s = np.zeros(np.broadcast_shapes(group_size.shape, stride.shape))
    below = np.ones(())
    for index, level in enumerate(levels):
        inside = _inside(level, index == len(levels) - 1, group_size, stride)
        repeated = group_size / inside if level.kind in BEHIND_NICS else 1.0
        latency_s = latency_s + (inside / below - 1) * repeated * level.latency_s
        below = inside
    return latency_s


def members_within(level: NetworkLevel, group_size: Array, stride: Array) -> Array:
    """Members of the worst-placed group that share one instance of ``level``: at least one.

    Groups are blocks of ``size * stride`` consecutive devices.  A block that divides the level's devices, or is a
    multiple of them, is cut evenly; any other straddles a border, and the smaller part is the bottleneck: 6 devices on
    nodes of 8 leave some group as 2 + 4.
    """
    block, devices = np.atleast_1d(group_size * stride), float(level.devices_per_group)
    smaller, larger = np.minimum(block, devices), np.maximum(block, devices)
    shared = smaller
    uneven = np.floor(larger / smaller) * smaller != larger
    if uneven.any():
        shared = shared.copy()
        shared[uneven] = np.gcd(block[uneven].astype(np.int64), level.devices_per_group)
    return np.minimum(group_size, np.maximum(1.0, np.floor(shared / stride)))


def _all_to_all_s(size_bytes: Array, group_size: Array, stride: Array, levels: Sequence[NetworkLevel]) -> Array:
    links = Links()
    below = np.ones(())
    for index, level in enumerate(levels):
        inside = _inside(level, index == len(levels) - 1, group_size, stride)
        line = group_bandwidth_bytes_per_s(level, inside, stride) * LINE_FRACTION[level.kind] * ALL_TO_ALL_FRACTION
        amount = size_bytes * (inside - below) / group_size
        # Messages to all peers are in flight together: latency grows with log of the peers, not with their number.
        links.add(level, 1.0 / line, amount, np.ceil(np.log2(np.maximum(inside / below, 1.0))) * level.latency_s)
        below = inside
    return links.pipelined_s()


def _send_recv_s(size_bytes: Array, stride: Array, levels: Sequence[NetworkLevel]) -> Array:
    time_s = np.zeros(())
    decided = np.zeros(stride.shape, dtype=bool)
    for index, level in enumerate(levels):
        here = ~decided & ((stride < level.devices_per_group) | (index == len(levels) - 1))
        # Neighbouring stages send from all their devices at once, so a device has its share of the NICs.
        rate = (
            level.pair_bandwidth_bytes_per_s
            if level.kind in ("switch", "mesh", "torus", "pcie")
            else level.bandwidth_bytes_per_s
        )
        time_s = np.where(here, size_bytes / (rate * LINE_FRACTION[level.kind]) + level.latency_s, time_s)
        decided = decided | here
    return time_s


def _inside(level: NetworkLevel, last: bool, group_size: Array, stride: Array) -> Array:
    """Members within ``level``; the outermost level holds the whole group."""
    if last:
        return group_size
    return members_within(level, group_size, stride)
