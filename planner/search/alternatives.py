"""What may become an alternative: the fastest plans of other degrees than the best one's?

While the search proves the best plan it remembers, for each set of degrees, the unsolved strategy of the lowest bound
(``remember``), and the cores and layouts whose bound is a little above the incumbent and which it therefore never wrote
out (``postpone``).  Afterwards these are looked at in order of their bounds, until no bound is below the slowest of the
alternatives that are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.cost.model_cost import ModelCost
from planner.cost.row_cost import RowCost
from planner.search.dealt_bounds import DealtBounds
from planner.search.leaves import Leaves
from planner.search.search_result import DEGREES, Degrees, SearchResult
from planner.strategy_rows import StrategyRows, distinct_rows

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

ALTERNATIVE_SLACK = 1.04
"""Strategies bounded up to this factor above the incumbent are kept in mind as alternatives."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """Cores or layouts that were not written out."""

    rows: StrategyRows
    key: Ints
    bounds: Array
    table: ModelCost


@dataclass(frozen=True, slots=True)
class Unsolved:
    """One complete strategy."""

    bound_s: float
    row: StrategyRows
    cost: RowCost
    table: ModelCost


class Alternatives:
    """``count`` alternatives are wanted beside the best plan of ``result``."""

    def __init__(self, count: int, result: SearchResult) -> None:
        self.count, self.result = count, result
        self.cores: list[Postponed] = []
        self.layouts: list[Postponed] = []
        self._waiting: dict[Degrees, Unsolved] = {}

    def wanted_below_s(self, cutoff_s: float) -> float:
        """Bound below which strategies may still be alternatives; ``cutoff_s`` (the incumbent) where none is asked."""
        if not self.count:
            return cutoff_s
        return max(cutoff_s, min(ALTERNATIVE_SLACK * cutoff_s, self.last_s()))

    def last_s(self) -> float:
        """Step time that a plan of other degrees must beat; infinity while fewer than asked for are known."""
        times = self.result.times_of_others_s()
        return times[self.count - 1] if len(times) >= self.count else float("inf")

    def postpone(self, to: list[Postponed], what: Postponed, left_out: NDArray[np.bool_], cutoff_s: float) -> None:
        """Keep those of the rows that were left out and may hold alternatives; ``to``: ``cores`` or ``layouts``."""
        if self.count:
            at = np.flatnonzero(left_out & (what.bounds < self.wanted_below_s(cutoff_s)))
            if len(at):
                to.append(Postponed(what.rows.take(at), what.key[at], what.bounds[at], what.table))

    def remember(self, leaves: Leaves, order: Ints, dealt: DealtBounds) -> None:
        """Keep the lowest-bounded unsolved strategy of each set of degrees, where its dealings may be fast enough."""
        if len(order) == 0 or not self.count:
            return
        at = order % len(leaves.terms.rows)
        distinct, index = distinct_rows([getattr(leaves.terms.rows, name)[at] for name in DEGREES])
        first = np.full(len(distinct), len(order))
        np.minimum.at(first, index, np.arange(len(order)))
        keys = [tuple(each) for each in distinct.tolist()]
        better = [group for group, key in enumerate(keys) if leaves.bounds[order[first[group]]] < self._known_s(key)]
        chosen = order[first[better]]
        hopeful = dealt.bounds_s(chosen, self.last_s()) < self.last_s()
        for group, leaf in zip(np.array(better)[hopeful].tolist(), chosen[hopeful].tolist(), strict=True):
            self._waiting[keys[group]] = Unsolved(float(leaves.bounds[leaf]), *leaves.leaf(leaf), leaves.table)

    def _known_s(self, key: Degrees) -> float:
        """What a strategy must be bounded below to be kept in mind for its degrees."""
        waiting, solved = self._waiting.get(key), self.result.by_degrees.get(key)
        waiting_s = np.inf if waiting is None else waiting.bound_s
        return min(waiting_s, np.inf if solved is None else solved.step_time_s)

    def next_unsolved(self, below_s: float) -> tuple[Degrees, Unsolved] | None:
        """The remembered strategy of the lowest bound, no longer remembered; None where none is below ``below_s``."""
        key = min(self._waiting, key=lambda each: self._waiting[each].bound_s, default=None)
        if key is None or self._waiting[key].bound_s >= below_s:
            return None
        return key, self._waiting.pop(key)
