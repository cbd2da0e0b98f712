"""What the hottest part of the routed experts gets (formulas and sources: ``planner.question.routing``): [K].

Apart from the question's documents, which are read without numpy.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.question.routing import RISE, ExpertLoad
from solver.arrays import Array

ORDERS = 16
"""Shuffles of the experts over which a Zipf load is the mean."""


def hottest_share(load: ExpertLoad, num_experts: int, parts: Array) -> Array:
    """What the hottest of ``parts`` equal parts of the experts gets over their mean: 1 where that is even: [K]."""
    if load.most is not None:
        typical: Array = 1.0 + load.most * (1.0 - np.maximum(parts, 1.0) ** -RISE)
        return typical
    return _hottest(load, num_experts)[np.minimum(parts, num_experts).astype(np.int64)]


@lru_cache(maxsize=64)
def _hottest(load: ExpertLoad, num_experts: int) -> NDArray[np.float64]:
    """By number of parts 0 .. experts; a number that does not divide the experts has what the next one below has."""
    shares, table = _shares(load, num_experts), np.ones(num_experts + 1)
    for parts in range(2, num_experts + 1):
        if num_experts % parts:
            table[parts] = table[parts - 1]
            continue
        each = shares.reshape(len(shares), parts, num_experts // parts).sum(axis=2)
        table[parts] = max(parts * float(each.max(axis=1).mean()), 1.0)
    return table


def _shares(load: ExpertLoad, num_experts: int) -> NDArray[np.float64]:
    """Shares of the tokens by order and number of an expert: rows sum to 1."""
    if load.tokens is not None:
        counts: NDArray[np.float64] = np.array([load.tokens]) / sum(load.tokens)
        return counts
    heat = (1.0 + np.arange(num_experts)) ** -(load.exponent or 0.0)
    places = np.arange(1, num_experts + 1)
    # Fractions of multiples of irrational numbers, sorted: shuffles that no release of numpy changes.
    orders = [np.argsort(np.modf(places * np.sqrt(root))[0], kind="stable") for root in _roots()]
    shuffled: NDArray[np.float64] = np.stack([heat[order] for order in orders]) / heat.sum()
    return shuffled


def _roots() -> tuple[float, ...]:
    """The first primes, whose square roots are irrational."""
    found: list[int] = []
    number = 2
    while len(found) < ORDERS:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return tuple(map(float, found))
