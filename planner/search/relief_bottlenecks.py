"""The least bottleneck at which the stages of a strategy hold every layer, under each of some memory reliefs.

The sums of ``planner.search.stage_capacity``, row by row, compiled: a search asks for thousands of rows at a time, in
many small groups.  Shape letters: R rows, P stages, K reliefs, D sharding keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.search.stage_capacity import ROUNDING
from solver.selection.kernel import INT, INTS, NOTHING, REAL_ROWS, REALS, inner, kernel

NEEDED, HOST_BYTES = range(2)
LOW_S, HIGH_S, LAYER_S, KEPT, STATE = range(5)
"""Columns of a row: least and largest bottleneck of use, what a layer takes, keeps, and holds as state."""
ENDS_S, FLIGHT, FREE = range(3)
"""Columns of a stage, P each."""
MOST, CREDIT_S, BEGINS_S, RELIEVED_A_S = range(4)


@inner
def _limits(own: Any, stages: Any, offer: Any, rules: Any, limits: Any) -> float:
    """What limits the layers of each stage, into ``limits`` [4, P]; a bottleneck at which time does not: -1 if none."""
    number, everything_s = limits.shape[1], 0.0
    layer_s = own[LAYER_S]
    for stage in range(number):
        ends_s, flight, free = stages[stage], stages[number + stage], stages[2 * number + stage]
        if free <= 0.0:
            return -1.0
        whole, relieved = own[STATE] + flight * own[KEPT], own[STATE] + flight * offer[0]
        held = free / relieved if relieved > 0.0 else np.inf
        if offer[2] != 0.0 and rules[HOST_BYTES] < np.inf and whole > 0.0:
            held = min(held, (free + rules[HOST_BYTES]) / whole)
        limits[MOST, stage] = held * (1 + ROUNDING)
        limits[BEGINS_S, stage] = ends_s * (1 + ROUNDING) - ROUNDING * layer_s
        limits[CREDIT_S, stage], limits[RELIEVED_A_S, stage] = np.inf, 1.0
        longest_s = layer_s * rules[NEEDED]
        price = offer[1] / flight if flight > 0.0 else np.inf
        if price < np.inf:
            unit_s = layer_s + price * whole
            limits[CREDIT_S, stage] = price * free - limits[BEGINS_S, stage]
            limits[RELIEVED_A_S, stage] = 1.0 / unit_s
            longest_s = max(longest_s, unit_s * rules[NEEDED] - price * free)
        everything_s = max(everything_s, ends_s + longest_s)
    return everything_s


@inner
def _holds_all(tau: float, layers_a_s: float, needed: float, limits: Any) -> bool:
    """Whether the stages together hold every layer within ``tau`` seconds each."""
    left, held = tau * (1 + ROUNDING), 0.0
    for stage in range(limits.shape[1]):
        count = (left - limits[BEGINS_S, stage]) * layers_a_s
        if limits[CREDIT_S, stage] < np.inf:
            count = min(count, (left + limits[CREDIT_S, stage]) * limits[RELIEVED_A_S, stage])
        held += np.floor(max(min(count, limits[MOST, stage]), 0.0))
    return held >= needed


@kernel(NOTHING(REAL_ROWS, REAL_ROWS, INTS, REAL_ROWS, REAL_ROWS, REALS, REALS, INT, REAL_ROWS))
def least_bottlenecks(  # noqa: PLR0917  (rows, reliefs, and where the answer goes)
    rows: Any,
    stages: Any,
    place: Any,
    relieved: Any,
    prices: Any,
    moves: Any,
    rules: Any,
    bisections: int,
    found: Any,
) -> None:
    """Fill ``found`` [K, R]: the lower end of the interval that holds it; infinity where nothing fits in time.

    ``rows`` [R, 5], ``stages`` [R, 3 P]; ``place`` [R]: key of each row, -1 where it is too slow anyhow; ``relieved``
    and ``prices`` [K, D]: bytes that a relieved layer keeps, seconds a byte freed with one micro-batch in flight;
    ``moves`` [K]: whether relief moves bytes to the host; ``rules``: layers needed, bytes of the host.
    """
    limits, offer = np.empty((4, stages.shape[1] // 3)), np.empty(3)
    for row in range(len(rows)):
        own, needed = rows[row], rules[NEEDED]
        for relief in range(len(relieved)):
            found[relief, row] = np.inf
            if place[row] < 0:
                continue
            offer[0], offer[1], offer[2] = relieved[relief, place[row]], prices[relief, place[row]], moves[relief]
            everything_s = _limits(own, stages[row], offer, rules, limits)
            layers_a_s, low = 1.0 / own[LAYER_S], own[LOW_S]
            if everything_s < 0.0 or not _holds_all(own[HIGH_S], layers_a_s, needed, limits):
                continue
            high = min(max(low, everything_s), own[HIGH_S])
            if not _holds_all(high, layers_a_s, needed, limits):
                continue
            if not _holds_all(low, layers_a_s, needed, limits):
                for _ in range(bisections):
                    middle = 0.5 * (low + high)
                    if _holds_all(middle, layers_a_s, needed, limits):
                        high = middle
                    else:
                        low = middle
            found[relief, row] = low
