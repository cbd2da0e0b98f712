"""The candidates for alternatives: the fastest plans of other degrees than the best one's.

While the search proves the best plan it remembers, for each set of degrees, the unsolved strategies of the lowest
bounds (``remember``), and the cores and layouts whose bound is a little above the incumbent and which it therefore
never wrote out (``postpone``).  Afterwards these are looked at in order of their bounds, until no bound is below the
slowest of the alternatives that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.predict.candidate import Candidate
from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.search.bound import BoundTerms
from planner.search.dealt_bounds import DealtBounds
from planner.search.leaves import Leaves
from planner.search.near_leaves import NearLeaves
from planner.search.row_context import joined, take
from planner.search.search_result import DEGREES, Degrees, SearchResult
from planner.search.split_terms import SplitRules
from planner.strategy.rows import StrategyRows, distinct_rows
from solver.arrays import Array, Ints

ALTERNATIVE_SLACK = 1.04 + 1e-9
"""Strategies bounded up to this factor above the incumbent are kept in mind as alternatives: a hair more than the band
of ``planner.search.recommend``, so that whatever is within that is known."""
KEPT, TRIED = 24, 36
"""Strategies of each set of degrees that are kept, and that the back-end is asked for, a batch."""
SAME = 1e-12
"""What a bound gives away to rounding: a strategy that was solved is not kept again."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """Cores or layouts that were not written out."""

    rows: StrategyRows
    key: Ints
    bounds: Array
    table: ModelCost

    def take(self, at: Ints) -> Postponed:
        """Some of them."""
        return Postponed(self.rows.take(at), self.key[at], self.bounds[at], self.table)


class _Written:
    """Strategies as rows, with their costs: written out together, once it is known which ones are kept."""

    rows: StrategyRows
    cost: RowCost


@dataclass(frozen=True, slots=True)
class Unsolved:
    """One complete strategy: number ``at`` of some that were written out together."""

    bound_s: float
    written: _Written
    at: int
    table: ModelCost
    is_close: bool
    """Whether its bound knows how the back-end deals its layers."""

    @property
    def row(self) -> StrategyRows:
        """It as a row of its own."""
        return self.written.rows.slice(self.at, self.at + 1)

    @property
    def cost(self) -> RowCost:
        """What it costs, as a row of its own."""
        return take(self.written.cost, slice(self.at, self.at + 1))


class Alternatives:
    """``count`` alternatives are wanted beside the best plan of ``result``, or beside the plans that are ``shown``.

    ``keeps_near``: whether to keep every strategy that was bounded and may still be one (``leaves``).
    """

    def __init__(self, count: int, result: SearchResult, *, keeps_near: bool = False) -> None:
        self.count, self.result, self.keeps_near = count, result, keeps_near
        self._shown: tuple[Candidate, ...] | None = None
        self.cores: list[Postponed] = []
        self.layouts: list[Postponed] = []
        self.leaves: list[NearLeaves] = []
        self._waiting: dict[Degrees, list[Unsolved]] = {}

    def wanted_below_s(self, cutoff_s: float) -> float:
        """Bound below which strategies may still be alternatives; ``cutoff_s`` (the incumbent) where none is asked."""
        if not self.count:
            return cutoff_s
        return max(cutoff_s, min(ALTERNATIVE_SLACK * cutoff_s, self.last_s()))

    def last_s(self) -> float:
        """Step time that a plan of other degrees must beat; infinity while fewer than asked for are known."""
        others = self.result.others(self.shown)
        return others[self.count - 1].step_time_s if len(others) >= self.count else float("inf")

    @property
    def shown(self) -> tuple[Candidate, ...]:
        """The plans beside which the alternatives stand."""
        if self._shown is not None:
            return self._shown
        return () if self.result.best is None else (self.result.best,)

    def stand_beside(self, shown: tuple[Candidate, ...], count: int) -> None:
        """``count`` alternatives are wanted beside these plans, when it is known which ones are shown."""
        self._shown, self.count = shown, count

    def postpone(self, to: list[Postponed], what: Postponed, left_out: NDArray[np.bool_], cutoff_s: float) -> None:
        """Keep those of the rows that were left out and may hold alternatives; ``to``: ``cores`` or ``layouts``."""
        if self.count:
            at = np.flatnonzero(left_out & (what.bounds < self.wanted_below_s(cutoff_s)))
            if len(at):
                to.append(what.take(at))

    def remember(
        self,
        leaves: Leaves,
        dealt: DealtBounds,
        left: NDArray[np.bool_],
        refused: Callable[[StrategyRows, int], bool],
        below_s: float,
    ) -> None:
        """Keep the strategies of the lowest bounds of each set of degrees, where they are below ``below_s``.

        ``left`` [R]: leaves, in order, that are not solved; ``refused``: whether the back-end cannot run the one at
        some position.
        """
        if not self.count:
            return
        order, seen = leaves.order, len(dealt.known_s)
        bounds_s = np.concatenate([dealt.known_s, leaves.bounds[order[seen:]]])
        wanted = bounds_s < below_s
        if self.keeps_near and wanted.any():
            self.leaves.append(NearLeaves.of(leaves, order[wanted], bounds_s[wanted]))
        wanted[: len(left)] &= left
        at = np.flatnonzero(wanted)
        at = at[np.argsort(bounds_s[at], kind="stable")]
        keys, group = _degrees_of(leaves, order[at])
        tried = np.flatnonzero(_rank_in_group(group) < TRIED)
        at, group = at[tried], group[tried]
        rows, written, found = leaves.rows(order[at]), _Written(), list[int]()
        for position, place in enumerate(at.tolist()):
            key, bound_s = keys[group[position]], float(bounds_s[place])
            if bound_s >= self._known_s(key) or refused(rows, position):
                continue
            kept = self._waiting.setdefault(key, [])
            kept.append(Unsolved(bound_s, written, len(found), leaves.table, is_close=place < seen))
            found.append(place)
            kept.sort(key=lambda each: each.bound_s)
            del kept[KEPT:]
        written.rows, written.cost = leaves.written_out(order[np.array(found, dtype=np.int64)])

    def _known_s(self, key: Degrees) -> float:
        """What a strategy must be bounded below to be kept in mind for its degrees."""
        waiting, solved = self._waiting.get(key, []), self.result.by_degrees.get(key)
        waiting_s = waiting[-1].bound_s if len(waiting) == KEPT else np.inf
        return min(waiting_s, np.inf if solved is None else solved.step_time_s * (1 - SAME))

    def next_unsolved(self, below_s: float, costs: CostModel, rules: SplitRules) -> tuple[Degrees, Unsolved] | None:
        """The remembered strategy of the lowest bound, no longer remembered; None where none is below ``below_s``."""
        while True:
            waiting = {key: kept[0].bound_s for key, kept in self._waiting.items() if kept}
            key = min(waiting, key=lambda each: waiting[each], default=None)
            if key is None or waiting[key] >= below_s:
                return None
            if self._waiting[key][0].is_close:
                return key, self._waiting[key].pop(0)
            # Close bounds are worked out where they decide which strategy is next, for many at once.
            self._bound_closely(below_s, costs, rules)

    def _bound_closely(self, below_s: float, costs: CostModel, rules: SplitRules) -> None:
        """Closer bounds of all that are remembered and may be below ``below_s``."""
        loose = [one for kept in self._waiting.values() for one in kept if not one.is_close and one.bound_s < below_s]
        close = {
            id(one): bound_s for one, bound_s in zip(loose, _close_bounds_s(loose, below_s, costs, rules), strict=True)
        }
        for key, kept in self._waiting.items():
            kept[:] = [
                replace(one, bound_s=max(one.bound_s, close[id(one)]), is_close=True) if id(one) in close else one
                for one in kept
            ]
            kept.sort(key=lambda each: each.bound_s)
            solved = self.result.by_degrees.get(key)
            if solved is not None:
                kept[:] = [one for one in kept if one.bound_s < solved.step_time_s * (1 - SAME)]


def _close_bounds_s(unsolved: Sequence[Unsolved], below_s: float, costs: CostModel, rules: SplitRules) -> list[float]:
    """What ``planner.search.dealt_bounds`` says of some strategies; not to be relied on from ``below_s`` up."""
    bounds_s = np.zeros(len(unsolved))
    for table in {id(one.table): one.table for one in unsolved}.values():
        at = np.array([place for place, one in enumerate(unsolved) if one.table is table])
        rows, cost = _side_by_side([unsolved[place] for place in at.tolist()])
        reliefs, relief = np.unique(rows.relief, return_inverse=True)
        place = np.arange(len(at))
        loose_s = np.full((len(reliefs), len(at)), np.inf)
        loose_s[relief, place] = [unsolved[one].bound_s for one in at]
        leaves = Leaves(BoundTerms(costs, rows, cost), reliefs.tolist(), table, loose_s, place)
        bounds_s[at] = DealtBounds(leaves, rules, lambda: below_s).bounds_s(relief * len(at) + place, below_s)
    return list(bounds_s.tolist())


def _side_by_side(unsolved: Sequence[Unsolved]) -> tuple[StrategyRows, RowCost]:
    """Strategies as rows one after the other, with their costs; those that were written out together are taken so."""
    places: dict[int, list[int]] = {}
    for place, one in enumerate(unsolved):
        places.setdefault(id(one.written), []).append(place)
    order = np.argsort(np.concatenate([np.array(some) for some in places.values()]))
    written = [(unsolved[some[0]].written, np.array([unsolved[at].at for at in some])) for some in places.values()]
    rows = joined([one.rows.take(at) for one, at in written])
    return rows.take(order), take(joined([take(one.cost, at) for one, at in written]), order)


def _degrees_of(leaves: Leaves, index: Ints) -> tuple[list[Degrees], Ints]:
    """The sets of degrees of some leaves, and which of them each leaf has."""
    if len(index) == 0:
        return [], index
    row = index % len(leaves.terms.rows)
    distinct, group = distinct_rows([getattr(leaves.terms.rows, name)[row] for name in DEGREES])
    return [tuple(each) for each in distinct.tolist()], group


def _rank_in_group(group: Ints) -> Ints:
    """How many earlier entries have the same value: [R]."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order], side="left")
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - first
    return rank
