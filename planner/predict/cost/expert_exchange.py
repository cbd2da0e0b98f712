"""The time in which the tokens of a mixture reach their experts, by how the dispatcher sends them.

``expert``: an all_to_all in which a token travels once for each of its experts (``planner.predict.collective``).
``node``: once to each node that holds some of its experts, and from there once to each device that does (DeepEP,
HybridEP).  Of ``T`` tokens of ``b`` bytes, at a level of the network whose instances hold ``L`` members, made of
parts of ``P``::

    bytes = T b D(ep / P) (1 - P / L)          D(n): distinct parts of n that a token reaches
    time  = largest of the links' bytes / (bandwidth fraction) * hottest(ep / P) + sum of latencies

A forwarded token takes the inner network while others cross the outer one, so the slower of the two is seen alone.
Tokens are forwarded inside a node, never from node to node: tiers of switches behind NICs share the copies that leave
a node, ``T b D(ep / P) (L - L_below) / ep`` each with ``P`` the members of a node, and all of them cross the NIC.

Check: DeepEP's own table on H800 (7168 wide, top 8 of 4 groups; docs/legacy.md @0297fc80) counts the copy that stays on
the node, too: 58 and 51 GB/s over 4 and 8 nodes are 43.5 and 44.6 GB/s on a NIC of 50: ``DISPATCH_FRACTION``; its 43
GB/s over 2 nodes are bound by NVLink, as the formula says, 13 % too fast (tests/unit/cost/test_expert_dispatch.py).
Shape letter: K keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.predict.collective import (
    ALL_TO_ALL_FRACTION,
    BASE_LATENCY_S,
    BEHIND_NICS,
    LINE_FRACTION,
    Links,
    members_within,
)
from planner.predict.distinct_parts import Routing, distinct_parts
from profiles.levels import NetworkLevel, group_bandwidth_bytes_per_s
from solver.arrays import Array

DISPATCH_FRACTION = 0.88
"""Of a NIC's line rate, in dispatch and combine kernels that write to it straight from device memory (see module)."""


DISPATCH_SMS = 20
"""Multiprocessors that DeepEP's kernels take while they run, as Megatron-Core sets them where nobody says otherwise
(core 0.19.2 transformer/moe/token_dispatcher.py:1278); HybridEP's are taken to be as many."""
MULTIPROCESSORS = {"ampere": 108, "hopper": 132, "blackwell": 148}
"""Of A100, H100 and B200 (NVIDIA's architecture papers)."""


def dispatch_share(architecture: str) -> float:
    """The part of the compute that dispatch kernels take from what they overlap with."""
    return DISPATCH_SMS / MULTIPROCESSORS.get(architecture, 132)


def dispatch_s(
    token_bytes: Array, group_size: Array, stride: Array, levels: Sequence[NetworkLevel], routing: Routing
) -> Array:
    """Seconds in which ``token_bytes`` of hidden states a device reach every device that holds experts of theirs: [K].

    A group of one, or no bytes, costs nothing.
    """
    size, below = np.asarray(group_size, dtype=np.float64), np.ones(())
    latency_s = np.zeros(np.broadcast_shapes(np.shape(token_bytes), size.shape))
    links, node = Links(), np.ones(())
    for index, level in enumerate(levels):
        inside = size if index == len(levels) - 1 else members_within(level, size, stride)
        rate = group_bandwidth_bytes_per_s(level, inside, stride) * _fraction(level)
        node = node if index and level.kind in BEHIND_NICS and levels[index - 1].kind in BEHIND_NICS else below
        parts = size / node
        share = (inside - below) / size if level.kind in BEHIND_NICS else 1.0 - below / inside
        links.add(level, 1.0 / rate, token_bytes * distinct_parts(routing, parts) * share * routing.hottest(parts))
        latency_s = latency_s + np.ceil(np.log2(np.maximum(inside / below, 1.0))) * level.latency_s
        below = inside
    return np.where((size > 1) & (token_bytes > 0), links.longest_s() + latency_s + BASE_LATENCY_S, 0.0)


def _fraction(level: NetworkLevel) -> float:
    if level.kind in BEHIND_NICS:
        return DISPATCH_FRACTION
    return LINE_FRACTION[level.kind] * ALL_TO_ALL_FRACTION
