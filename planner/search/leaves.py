"""Which complete strategies does a batch hold, and in which order are they worth solving?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.cost.model_cost import ModelCost
from planner.cost.row_cost import RowCost
from planner.search.bound import BoundTerms
from planner.search.row_context import take
from planner.strategy_rows import StrategyRows


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

    def leaf(self, index: int) -> tuple[StrategyRows, RowCost]:
        """One strategy as a row of its own, with its costs."""
        relief, at = divmod(index, len(self.terms.rows))
        code, here = self.reliefs[relief], np.array([at])
        cost = take(self.terms.cost, here)
        layers = self.table.layers
        relieved = replace(
            cost, relief_s=layers.relief_s[code, cost.key], relieved_bytes=layers.saved_bytes[code, cost.key]
        )
        return replace(self.terms.rows.take(here), relief=np.array([code])), relieved
