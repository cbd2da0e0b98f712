"""Lower bounds of cores: costed and bounded in waves, the most promising cores first.

What the layers of a core take, ``m (sum of layer times) / pp``, is known from its sharding alone and bounds all that
is under it.  Everything else is costed, and bounded closer, a wave of cores at a time: the first wave holds the cores
up to ``FIRST_WAVE`` times the fastest layers, each further one those up to twice as much as the one before.  Most
cores are so slow in their layers alone that the search ends before their wave comes.
Shape letter: R rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import CostModel
from planner.search.alternatives import Postponed
from planner.search.bound import BoundTerms, Schedules
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints

CORE_BATCH = 32_768
"""Cores bounded at a time, and the fewest for which waves are worth their while."""
FIRST_WAVE = 2.0
ROUNDING = 1 - 1e-12
"""What another order of the same sums may differ by."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Some cores: their positions among all, their costs and bounds, and what is known of those after them."""

    index: Ints
    cores: Postponed
    rest_s: float
    """No core of a later wave is faster; infinity where there is none."""


class CoreWaves:
    """The cores of a search; ``limit_bytes``: memory of a device."""

    def __init__(self, costs: CostModel, cores: StrategyRows, limit_bytes: float) -> None:
        self.costs, self.cores, self.limit_bytes = costs, cores, limit_bytes
        self._known: list[Wave] = []

    @cached_property
    def _parts(self) -> list[Ints]:
        """The cores of each wave."""
        if len(self.cores) <= CORE_BATCH:
            return [np.arange(len(self.cores))] if len(self.cores) else []
        times = np.maximum(self._floors_s / (FIRST_WAVE * self._floors_s.min()), 1.0)
        number = np.ceil(np.log2(times)).astype(np.int64)
        return [np.flatnonzero(number == each) for each in np.flatnonzero(np.bincount(number))]

    @cached_property
    def _floors_s(self) -> Array:
        """What the layers of each core take at least: [R]."""
        layers_s = self.costs.layers_s(self.cores)
        return np.asarray(self.cores.num_microbatches * layers_s / self.cores.pp * ROUNDING)

    def wave(self, number: int) -> Wave | None:
        """The wave of that number, costed when it is first asked for; None after the last one."""
        parts = self._parts
        while number < len(parts) and len(self._known) <= number:
            index = parts[len(self._known)]
            rows = self.cores if len(parts) == 1 else self.cores.take(index)
            table, key = self.costs.keyed(rows)
            bounds = core_bounds(self.costs, rows, (table, key), self.limit_bytes)
            later = parts[len(self._known) + 1 :]
            rest_s = float(self._floors_s[later[0]].min()) if later else float("inf")
            self._known.append(Wave(index, Postponed(rows, key, bounds, table), rest_s))
        return self._known[number] if number < len(parts) else None

    @property
    def least_bound_s(self) -> float:
        """No strategy of the space is faster; infinity where nothing can fit."""
        least_s, number = float("inf"), 0
        while (wave := self.wave(number)) is not None:
            least_s = min(least_s, float(wave.cores.bounds.min()))
            if least_s <= wave.rest_s:
                break
            number += 1
        return least_s


def core_bounds(costs: CostModel, cores: StrategyRows, keyed: tuple[ModelCost, Ints], limit_bytes: float) -> Array:
    """Lower bound of every core over all its leaves: [R]; infinity where even the leanest leaf cannot fit."""
    (table, key), parts = keyed, []
    for start in range(0, len(cores), CORE_BATCH):
        rows = cores.slice(start, start + CORE_BATCH)
        cost = costs.rows(rows, (table, key[start : start + CORE_BATCH]), one_table=True)
        terms = BoundTerms(costs, rows, cost, leanest_tail=True)
        busy_s = rows.num_microbatches * terms.least_peak_s(Schedules.of(rows)) + terms.tail_s
        parts.append(np.where(terms.leanest_bytes() <= limit_bytes, busy_s, np.inf))
    return np.concatenate(parts)
