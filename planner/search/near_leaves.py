"""The strategies that a search bounded and found nearly as fast as its best plan.

Whoever searches again for something nearly as fast, under tighter limits, need not descend to them once more.
Shape letters: R rows, K reliefs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.search.bound import BoundTerms
from planner.search.leaves import Leaves
from planner.search.mechanisms import Part
from planner.search.memory_bound import relief_bounds_s
from planner.search.row_context import joined, take
from planner.search.stage_capacity import MemoryLimits
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints, Mask


@dataclass(frozen=True, slots=True)
class NearLeaves:
    """Shardings with the bounds of their leaves: [K, R]; infinity where a leaf is none of them."""

    rows: StrategyRows
    cost: RowCost
    reliefs: tuple[int, ...]
    table: ModelCost
    bounds: Array

    @classmethod
    def of(cls, leaves: Leaves, index: Ints, bounds_s: Array) -> NearLeaves:
        """The leaves ``index`` and their bounds."""
        relief, at = np.divmod(index, len(leaves.terms.rows))
        used, place = np.unique(at, return_inverse=True)
        bounds = np.full((len(leaves.reliefs), len(used)), np.inf)
        bounds[relief, place] = bounds_s
        terms = leaves.terms
        return cls(terms.rows.take(used), take(terms.cost, used), tuple(leaves.reliefs), leaves.table, bounds)

    @classmethod
    def together(cls, parts: Sequence[NearLeaves]) -> list[NearLeaves]:
        """The same leaves, those of one table of costs and of the same reliefs together."""
        alike: dict[tuple[int, tuple[int, ...]], list[NearLeaves]] = {}
        for each in parts:
            alike.setdefault((id(each.table), each.reliefs), []).append(each)
        return [cls._joined(some) for some in alike.values()]

    @classmethod
    def _joined(cls, parts: Sequence[NearLeaves]) -> NearLeaves:
        rows, cost = joined([each.rows for each in parts]), joined([each.cost for each in parts])
        bounds = np.concatenate([each.bounds for each in parts], axis=1)
        return cls(rows, cost, parts[0].reliefs, parts[0].table, bounds)

    def below(self, below_s: float, part: Part | None) -> NearLeaves:
        """Those whose bound is below ``below_s``, and that are of ``part`` where it is given."""
        bounds = np.where(self.bounds < below_s, self.bounds, np.inf)
        if part is not None:
            bounds[~self._of(part)] = np.inf
        at = np.flatnonzero(np.isfinite(bounds).any(axis=0))
        return NearLeaves(self.rows.take(at), take(self.cost, at), self.reliefs, self.table, bounds[:, at])

    def _of(self, part: Part) -> Mask:
        """Leaves that are of a part: [K, R]."""
        kept = np.zeros(self.bounds.shape, dtype=np.bool_)
        for at, reliefs in part.parts(self.rows, np.arange(len(self.rows)), list(self.reliefs)):
            number = np.array([self.reliefs.index(code) for code in reliefs], dtype=np.int64)
            kept[np.ix_(number, at)] = True
        return kept & part.keeps(self.rows)

    def within(self, costs: CostModel, limits: MemoryLimits, below_s: float) -> Leaves:
        """Those that may be faster than ``below_s`` within some limits."""
        terms = BoundTerms(costs, self.rows, self.cost)
        bounds = relief_bounds_s(terms, self.table.layers, self.reliefs, limits, below_s)
        place = np.arange(len(self.rows))
        return Leaves(terms, self.reliefs, self.table, np.maximum(bounds, self.bounds), place)
