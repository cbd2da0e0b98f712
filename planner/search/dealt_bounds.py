"""Bounds of the leaves that look fast enough, with their layers dealt as the back-end deals them.

The bounds of ``planner.search.memory_bound`` let every stage relieve the part of a layer that memory forces, and deal
layers of the most frequent kind alone.  Layers are relieved whole; a back-end may deal the declared family only, or
relieve the same number of layers in every chunk.  Bounds that know it (``stage_bound``, ``family_bound``,
``line_bound``) cost more, so they are computed as far as the leaves are looked at: blocks of leaves in the
order in which they are solved, ever larger ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from planner.predict.cost.short_axis import planes_at
from planner.search.bound import ROUNDING, Schedules
from planner.search.family_bound import FamilyBound
from planner.search.leaves import Leaves
from planner.search.line_bound import LineBound
from planner.search.row_context import take
from planner.search.split_terms import SplitRules
from planner.search.stage_bound import StageBound
from planner.strategy.rows import first_of_each
from solver.arrays import Array, Ints

FIRST_BLOCK = 64
MOST_LEAVES = 4096
"""Leaves bounded at a time, from the first block to the largest: a good incumbent may end the search before it."""


class DealtBounds:
    """Bounds of the leaves under the rules of a back-end, in the order of ``leaves.order``.

    ``worth_s`` says below which bound a leaf is of use at the moment; it only falls.
    """

    def __init__(self, leaves: Leaves, rules: SplitRules, worth_s: Callable[[], float]) -> None:
        self._leaves, self._rules, self._worth_s = leaves, rules, worth_s
        self.known_s = np.zeros(0)
        """The bounds found so far, in order; not to be relied on where they are of no use."""
        self.seen = np.zeros(len(leaves.order), dtype=np.bool_)
        """Leaves that were given out, or whose bound was too slow when it was their turn."""
        self.too_slow = 0
        """How many the latter are."""

    def closest_first(self, cutoff_s: Callable[[], float]) -> Iterator[tuple[int, float]]:
        """Every leaf that may be faster than ``cutoff_s``, which only falls: its place in the order, and its bound.

        Of each block the leaf of the lowest bound first: that of its dealings nearly is its step time.
        """
        order, size = self._leaves.order, FIRST_BLOCK
        while len(self.known_s) < len(order):
            if self.rest_s >= cutoff_s():
                return
            start, worth_s = len(self.known_s), self._worth_s()
            block = order[start : start + size]
            block = block[self._leaves.bounds[block] < worth_s]
            bounds = self.bounds_s(block, worth_s)
            self.known_s = np.concatenate([self.known_s, bounds])
            closest = np.argsort(bounds, kind="stable").tolist()
            for position, place in enumerate(closest):
                if bounds[place] >= cutoff_s():
                    # All that is left of the block is no faster.
                    self.too_slow += len(closest) - position
                    self.seen[start : start + len(block)] = True
                    break
                self.seen[start + place] = True
                yield start + place, float(bounds[place])
            size = min(4 * size, MOST_LEAVES)

    @property
    def rest_s(self) -> float:
        """No leaf after those that were looked at is faster; infinity where there is none."""
        rest = self._leaves.order[len(self.known_s) :]
        return float(self._leaves.bounds[rest[0]]) if len(rest) else float("inf")

    def forget_unseen(self) -> None:
        """Drop the bounds of the leaves that were not given out."""
        self.known_s = self.known_s[self.seen[: len(self.known_s)]]
        self.seen = self.seen[self.seen]

    def bounds_s(self, index: Ints, cutoff_s: float) -> Array:
        """Bounds of the leaves ``index``; not to be relied on from ``cutoff_s`` up."""
        bounds = self._leaves.bounds[index]
        if self._rules.even or len(index) == 0:
            return bounds
        if self._rules.uniform:
            bounds = np.maximum(bounds, self._wholly_relieved_s(index))
        left = np.flatnonzero(bounds < cutoff_s)
        bounds[left] = np.maximum(bounds[left], self._dealt_s(index[left], cutoff_s))
        return bounds

    def _wholly_relieved_s(self, index: Ints) -> Array:
        """Bound that ignores memory, with all that relieving every layer takes where the back-end relieves them all."""
        relief, at = np.divmod(index, len(self._leaves.terms.rows))
        code, terms, reliefs = (
            np.array(self._leaves.reliefs)[relief],
            self._leaves.terms,
            self._leaves.terms.costs.reliefs,
        )
        all_of_them = np.array([self._rules.whole or each.recompute != "full" for each in reliefs])[code]
        relief_s = planes_at(self._leaves.table.layers.relief_s, code, terms.cost.key[at]) * all_of_them[:, None]
        bounds = terms.loose_under_s(Schedules.of(terms.rows, at), at, relief_s) * (1.0 - ROUNDING)
        return np.asarray(bounds)

    def _dealt_s(self, index: Ints, cutoff_s: float) -> Array:
        """Bounds that know the dealings: [len(index)]."""
        bounds, costs = np.zeros(len(index)), self._leaves.terms.costs
        rows, cost = self._leaves.written_out(index)
        tail_s = self._leaves.terms.tail_s[index % len(self._leaves.terms.rows)]
        alike, kind = first_of_each([np.where(rows.vpp > 1, 0, rows.pp)])
        for group in range(len(alike)):
            at = np.flatnonzero(kind == group)
            bound = self._bound_of(int(rows.vpp[at[0]]))
            own = bound(costs, self._rules, rows.take(at), take(cost, at), tail_s[at])
            bounds[at] = own.step_s(cutoff_s)
        return bounds

    def _bound_of(self, vpp: int) -> type[FamilyBound] | type[LineBound] | type[StageBound]:
        if vpp > 1:
            return FamilyBound
        return LineBound if self._rules.uniform else StageBound
