"""The strategies whose layers are dealt exactly only once the search is nearly over.

A strategy of one chunk a device may deal its layers in any way, and finding the best one takes a dynamic program.  The
near-even dealing is nearly as good and a hundred times cheaper, so it stands for the strategy while the search goes on;
when the incumbent is as good as near-even dealings make it, few strategies are left whose bound is below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.search.row_context import RowContext

Collected = list[tuple[float, RowContext]]
"""Strategies with lower bounds of their step times."""


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
