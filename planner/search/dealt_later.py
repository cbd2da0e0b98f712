"""The strategies whose layers are dealt exactly only once the search is nearly over.

A strategy of one chunk a device may deal its layers in any way, and finding the best one takes a dynamic program.  The
near-even dealing is nearly as good and a hundred times cheaper, so it stands for the strategy while the search goes on;
when the incumbent is as good as near-even dealings make it, few strategies are left whose bound is below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.predict.cost.row_cost import CostModel
from planner.search.leaves import Leaves
from planner.search.row_context import RowContext, row_context
from planner.strategy.rows import StrategyRows
from solver.arrays import Ints


@dataclass(frozen=True, slots=True)
class Met:
    """A strategy that a search met, with a lower bound of its step time: the leaf ``index`` [1], written out as a row.

    What solving it needs is derived when it is solved.
    """

    bound_s: float
    leaves: Leaves
    index: Ints
    row: StrategyRows

    def context(self, costs: CostModel) -> RowContext:
        """What the exact search must know."""
        return row_context(costs, self.leaves.table, self.row, self.leaves.costs(self.index, self.row))


Collected = list[Met]
"""Strategies in the order in which a search met them."""


class DealtLater:
    """Strategies with a bound of all their dealings."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, RowContext]] = []

    def add(self, bound_s: float, context: RowContext) -> None:
        """Keep a strategy for later."""
        self._waiting.append((bound_s, len(self._waiting), context))

    def below(self, cutoff_s: Callable[[], float]) -> Iterator[tuple[float, RowContext]]:
        """Those whose bound is below the cutoff of the moment, the lowest bound first."""
        for bound_s, _, context in sorted(self._waiting, key=lambda each: each[:2]):
            if bound_s >= cutoff_s():
                return
            yield bound_s, context
