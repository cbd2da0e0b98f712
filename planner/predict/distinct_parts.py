"""How many parts of a mixture's experts a token reaches.

``D`` of top-k routing over all experts: ``n (1 - (1 - 1/n)^k)``.  Group-limited routing (DeepSeek-V3: 4 of 8 groups,
arXiv 2412.19437, section 2.1.2) draws its k experts from G' of G groups: with n parts of whole groups, the expected
number of parts over the hypergeometric count of chosen groups in a part; with parts of a group, ``D(G' n / G)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from planner.model.operator import Operator
from planner.predict.hottest_share import hottest_share
from planner.question.routing import EVEN, ExpertLoad
from solver.arrays import Array


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
