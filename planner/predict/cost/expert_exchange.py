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

``D`` of top-k routing over all experts: ``n (1 - (1 - 1/n)^k)``.  Group-limited routing (DeepSeek-V3: 4 of 8 groups,
arXiv 2412.19437, section 2.1.2) draws its k experts from G' of G groups: with n parts of whole groups, the expected
number of parts over the hypergeometric count of chosen groups in a part; with parts of a group, ``D(G' n / G)``.

Check: DeepEP's own table on H800 (7168 wide, top 8 of 4 groups; docs/legacy.md @0297fc80) counts the copy that stays on
the node, too: 58 and 51 GB/s over 4 and 8 nodes are 43.5 and 44.6 GB/s on a NIC of 50: ``DISPATCH_FRACTION``; its 43
GB/s over 2 nodes are bound by NVLink, as the formula says, 13 % too fast (tests/unit/cost/test_expert_dispatch.py).
Shape letter: K keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from planner.model.operator import Operator
from planner.model.spec import ModelSpec
from planner.predict.collective import (
    ALL_TO_ALL_FRACTION,
    BASE_LATENCY_S,
    BEHIND_NICS,
    LINE_FRACTION,
    Links,
    members_within,
)
from planner.predict.hottest_share import hottest_share
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.activations import layer_input_bytes
from planner.question.routing import EVEN, ExpertLoad
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


@dataclass(frozen=True, slots=True)
class Routing:
    """How many experts a token meets, and the groups of experts that it may choose them from."""

    top_k: float
    num_groups: int = 1
    top_k_groups: int = 1
    num_experts: int = 1
    load: ExpertLoad = EVEN
    """How unevenly tokens reach the experts, which makes the hottest receiver the slowest."""

    def hottest(self, parts: Array) -> Array | float:
        """What the hottest of ``parts`` of the experts receives over the mean."""
        return 1.0 if self.load.kind == "even" else hottest_share(self.load, self.num_experts, parts)


def routing_of(operator: Operator, load: ExpertLoad = EVEN) -> Routing:
    """How the experts of a matmul are chosen."""
    groups = operator.num_groups, operator.top_k_groups
    return Routing(operator.tokens_per_token, *groups, operator.num_experts, load)


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


def distinct_parts(routing: Routing, parts: Array) -> Array:
    """Of ``parts`` equal parts of the experts, those that a token reaches in the mean: [K]."""
    k, groups, chosen = routing.top_k, routing.num_groups, routing.top_k_groups
    parts = np.asarray(parts, dtype=np.float64)
    if chosen >= groups:
        return drawn(k, parts)
    found = drawn(k, np.maximum(parts * chosen / groups, 1.0))
    for number in _whole_groups(groups):
        found = np.where(parts == number, _parts_of_groups(k, groups, chosen, number), found)
    return found


def drawn(draws: float, parts: Array) -> Array:
    """Distinct parts that independent draws hit: ``n (1 - (1 - 1/n)^k)``."""
    found: Array = parts * (1.0 - (1.0 - 1.0 / np.maximum(parts, 1.0)) ** draws)
    return found


def _whole_groups(groups: int) -> tuple[int, ...]:
    """Numbers of parts that hold whole groups each."""
    return tuple(number for number in range(1, groups + 1) if groups % number == 0)


@cache
def _parts_of_groups(draws: float, groups: int, chosen: int, parts: int) -> float:
    """Expected parts reached, where a part holds ``groups / parts`` whole groups and ``chosen`` groups are drawn."""
    held = groups // parts
    ways, reached = comb(groups, chosen), 0.0
    for here in range(1, min(held, chosen) + 1):
        share = comb(held, here) * comb(groups - held, chosen - here) / ways
        reached += share * (1.0 - (1.0 - here / chosen) ** draws)
    return parts * reached


def _fraction(level: NetworkLevel) -> float:
    if level.kind in BEHIND_NICS:
        return DISPATCH_FRACTION
    return LINE_FRACTION[level.kind] * ALL_TO_ALL_FRACTION


def dispatch_bytes(model: ModelSpec, keys: LayerKeys) -> Array:
    """Send and receive buffers of the expert exchange on the hottest rank, for the model's widest mixture: [K]."""
    mixtures = [layer.moe for layer in model.layer_kinds if layer.moe is not None]
    if not mixtures:
        return np.zeros(len(keys))
    widest = max(mixtures, key=lambda moe: moe.top_k)
    sent = widest.top_k * layer_input_bytes(keys, model.hidden_size)
    return np.where(keys.ep > 1, sent * (1.0 + keys.hottest(widest.num_experts)), 0.0)
