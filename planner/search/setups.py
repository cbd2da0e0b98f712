"""Groups of strategies that share their costs: those that differ in nothing but their schedule.

Costs know of a schedule its class (``planner.strategy.rows.schedule_class``) and how many chunks it makes of a stage.
A *setup* is everything else about a strategy.  Thousands of strategies share a few hundred setups: these are costed
once, and what a strategy adds is the makespan of its own schedule.  Shape letters: R rows, L layouts, C setups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import CostModel
from planner.search.bound import ROUNDING, BoundTerms, Schedules
from planner.search.mechanisms import Part
from planner.search.row_context import take
from planner.search.space import Space
from planner.strategy.rows import StrategyRows, first_of_each, schedule_class
from solver.arrays import Array, Ints


@dataclass(frozen=True)
class SharedSetups:
    """Row i: the schedule of ``layouts`` at ``layout[i]``, everything else of the setup ``setup[i]``.

    ``terms`` are those of the setups, each under the schedule of one of its rows.
    """

    terms: BoundTerms
    table: ModelCost
    layouts: StrategyRows
    layout: Ints
    setup: Ints

    @cached_property
    def loose_s(self) -> Array:
        """Lower bound of every row that ignores memory: [R]."""
        return self.terms.loose_under_s(Schedules.of(self.layouts, self.layout), self.setup)

    def promising(self, below_s: float, limit_bytes: float) -> Ints:
        """Rows that may be faster than ``below_s`` and whose states fit: positions, ascending in pp."""
        at = np.flatnonzero(self.loose_s < below_s)
        layout, setup = self.layout[at], self.setup[at]
        names = ("pp", "vpp", "schedule", "num_microbatches", "group")
        columns = (getattr(self.layouts, name)[layout] for name in names)
        fixed_bytes = take(self.terms.cost.fixed, setup).total(*columns)
        at = at[fixed_bytes + self.terms.mean_state_bytes()[setup] <= limit_bytes]
        return at[np.argsort(self.layouts.pp[self.layout[at]], kind="stable")]

    def bound_terms(self, at: Ints, rows: StrategyRows | None = None) -> BoundTerms:
        """The pieces of the bound of some rows, written out; ``rows``: they, where that is done already."""
        return self.terms.under(self.rows(at) if rows is None else rows, self.setup[at], self.loose_s[at])

    def rows(self, at: Ints) -> StrategyRows:
        """Some rows, written out."""
        own = {name: getattr(self.layouts, name)[self.layout[at]] for name in ("schedule", "vpp", "group")}
        return replace(self.terms.rows.take(self.setup[at]), **own)

    def offloaded(self, below_s: float, part: Part | None = None) -> SharedSetups | None:
        """The rows with the optimizer on the host instead that may be faster than ``below_s``; None without any.

        Of ``part`` alone where it is given.
        """
        loose_s, able = self.loose_s + self.terms.offload_s()[self.setup], self.terms.rows.zero > 0
        if part is not None:
            able &= part.may_keep(replace(self.terms.rows, optimizer_offload=np.ones_like(able, dtype=np.int64)))
        at = np.flatnonzero(able[self.setup] & (loose_s < below_s))
        if len(at) == 0:
            return None
        used, setup = np.unique(self.setup[at], return_inverse=True)
        rows = replace(self.terms.rows.take(used), optimizer_offload=np.ones(len(used), dtype=np.int64))
        costs = self.terms.costs
        terms = BoundTerms(costs, rows, costs.rows(rows, (self.table, self.terms.cost.key[used])))
        return SharedSetups(terms, self.table, self.layouts, self.layout[at], setup)


def layouts_by_setup(costs: CostModel, layouts: StrategyRows, keyed: tuple[ModelCost, Ints]) -> SharedSetups:
    """Layouts, with the leanest tail of all their shardings."""
    table, key = keyed
    first, setup = _setups(layouts, key)
    rows = layouts.take(first)
    terms = BoundTerms(costs, rows, costs.rows(rows, (table, key[first])), leanest_tail=True)
    return SharedSetups(terms, table, layouts, np.arange(len(layouts)), setup)


def shardings_by_setup(
    costs: CostModel,
    space: Space,
    layouts: StrategyRows,
    keyed: tuple[ModelCost, Ints],
    offloads: tuple[int, ...] | None,
    below_s: float = np.inf,
    *,
    part: Part | None = None,
) -> SharedSetups | None:
    """Shardings of some layouts, in the order of ``Space.shardings``; None where there are none.

    Those that may be faster than ``below_s`` whatever their schedule; of ``part`` alone where it is given.
    """
    table, key = keyed
    first, of_layout = _setups(layouts, key)
    rows, seat = space.shardings(layouts.take(first), np.arange(len(first)), offloads, np.bincount(of_layout))
    if part is not None:
        kept = np.flatnonzero(part.may_keep(rows))
        rows, seat = rows.take(kept), seat[kept]
    if len(rows) == 0:
        return None
    terms = BoundTerms(costs, rows, costs.rows(rows, (table, key[first[seat]])))
    least_s = rows.num_microbatches * terms.total_s / rows.pp + terms.tail_s
    if offloads is not None:
        # An offloaded twin stands on its row.
        least_s += np.minimum(terms.offload_s(), 0.0)
    fast = np.flatnonzero(least_s * (1.0 - ROUNDING) < below_s)
    if len(fast) == 0:
        return None
    terms, seat = terms.taken(fast), seat[fast]
    return SharedSetups(terms, table, layouts, *_pairs(layouts, of_layout, seat))


def _setups(layouts: StrategyRows, key: Ints) -> tuple[Ints, Ints]:
    """Position of one layout of each setup: [C], and the setup of every layout: [L].

    Within one search ``key`` (degrees, micro-batch) and ``pp`` leave nothing of a core open.
    """
    return first_of_each([key, layouts.pp, layouts.pp_inner, schedule_class(layouts)])


def _pairs(layouts: StrategyRows, of_layout: Ints, seat: Ints) -> tuple[Ints, Ints]:
    """Every layout with each sharding of its setup: layout and sharding of every row, two [R].

    ``seat``: the setup of which each sharding is one; those of one setup are neighbours.
    """
    counts = np.bincount(seat, minlength=int(of_layout.max()) + 1)
    start = np.zeros(len(counts), dtype=np.int64)
    start[seat[::-1]] = np.arange(len(seat) - 1, -1, -1)
    order = np.lexsort((layouts.pp, layouts.dp))
    many = counts[of_layout[order]]
    begin = np.cumsum(many) - many
    setup = np.repeat(start[of_layout[order]] - begin, many) + np.arange(int(many.sum()))
    return np.repeat(order, many), setup
