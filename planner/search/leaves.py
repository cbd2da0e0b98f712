"""The complete strategies of a batch, and the order in which they are worth solving."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import RowCost
from planner.predict.cost.short_axis import planes_at
from planner.search.bound import BoundTerms
from planner.search.row_context import take
from planner.strategy.rows import StrategyRows


class Leaves:
    """Every sharding under every relief, never written out; ``order``: the lowest bound first, then relief by relief.

    ``place``: the sharding's place in the space, which decides between equals.
    """

    def __init__(
        self,
        terms: BoundTerms,
        reliefs: Sequence[int],
        table: ModelCost,
        bounds: NDArray[np.float64],
        place: NDArray[np.int64],
    ) -> None:
        self.terms, self.reliefs, self.table = terms, reliefs, table
        self.bounds = bounds.ravel()
        finite = np.flatnonzero(np.isfinite(self.bounds))
        relief, at = np.divmod(finite, len(place))
        self.order = finite[np.lexsort((place[at], relief, self.bounds[finite]))]

    def cut(self, some: NDArray[np.bool_]) -> Leaves:
        """Take some of the leaves out of the order; the same leaves with these alone."""
        rest = copy(self)
        rest.order, self.order = self.order[some], self.order[~some]
        return rest

    def rows(self, index: NDArray[np.int64]) -> StrategyRows:
        """Strategies as rows of their own."""
        relief, at = np.divmod(index, len(self.terms.rows))
        return replace(self.terms.rows.take(at), relief=np.array(self.reliefs)[relief])

    def written_out(self, index: NDArray[np.int64]) -> tuple[StrategyRows, RowCost]:
        """Strategies as rows of their own, with their costs."""
        rows = self.rows(index)
        return rows, self.costs(index, rows)

    def costs(self, index: NDArray[np.int64], rows: StrategyRows) -> RowCost:
        """What strategies cost that are written out as ``rows``."""
        cost, layers = take(self.terms.cost, index % len(self.terms.rows)), self.table.layers
        relief_s = planes_at(layers.relief_s, rows.relief, cost.key)
        relieved_bytes = planes_at(layers.saved_bytes, rows.relief, cost.key)
        return replace(cost, relief_s=relief_s, relieved_bytes=relieved_bytes)
