"""Finds the plans of other degrees that stand next to the best one.

When a search is over, the strategies that it left out for the best plan's sake may still be the best of their own
degrees.  Those of the lowest bounds are solved until no bound that is left can be an alternative.  Where they are too
few, the rest of the space is searched for the fastest plan of yet other degrees.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from planner.predict.candidate import Candidate
from planner.search.alternatives import Alternatives, Postponed
from planner.search.batches import MOST_LAYOUTS
from planner.search.branch import Search
from planner.search.options import Incumbent
from planner.search.row_context import row_context
from planner.search.search_result import DEGREES, Degrees, degrees
from planner.strategy.rows import StrategyRows
from solver.arrays import Ints, Mask


def find_alternatives(search: Search, shown: tuple[Candidate, ...], count: int) -> list[Candidate]:
    """``count`` plans of other degrees than those that are ``shown``: the most promising strategies, solved.

    They are not proved best of their kind, and the counts of the proof do not include them.
    """
    evaluated, pruned, kept = search.result.evaluated, search.result.pruned.copy(), search.alternatives
    kept.stand_beside(shown, count)
    _solve(search)
    for cores in [_still_wanted(search, each) for each in kept.cores]:
        if len(cores.bounds) and not search.late():
            layouts = search.bounded_layouts(cores, np.inf)
            kept.postpone(kept.layouts, layouts, np.isfinite(layouts.bounds), search.fastest_s)
    for layouts in sorted(kept.layouts, key=lambda each: float(each.bounds.min())):
        _expand(search, layouts)
    search.result.evaluated, search.result.pruned = evaluated, pruned
    found = search.result.others(shown)
    while len(found) < count and not search.late():
        taken = frozenset((*search.result.by_degrees, *map(degrees, shown)))
        more = _beyond(search, OtherDegrees(taken), count - len(found))
        if not more:
            break
        search.result.by_degrees |= more
        found = search.result.others(shown)
    return found[:count]


@dataclass(frozen=True, slots=True)
class OtherDegrees:
    """The part of a space whose degrees are not ``taken``; a core says what they are."""

    taken: frozenset[Degrees]

    def keeps(self, rows: StrategyRows) -> Mask:
        """Rows of this part."""
        columns = np.column_stack([getattr(rows, name) for name in DEGREES])
        return np.array([tuple(each) not in self.taken for each in columns.tolist()], dtype=np.bool_)

    def may_keep(self, rows: StrategyRows) -> Mask:
        """Every row under a core of this part is of it."""
        return np.ones(len(rows), dtype=np.bool_)

    def parts(self, rows: StrategyRows, at: Ints, reliefs: list[int]) -> list[tuple[Ints, list[int]]]:
        """Every row may have every relief."""
        return [(at, reliefs)]

    def may_be_uneven(self, row: StrategyRows) -> bool:
        """Whether its layers may be dealt unequally."""
        return True


def _beyond(search: Search, part: OtherDegrees, count: int) -> dict[Degrees, Candidate]:
    """Plans of degrees that no plan has yet, the fastest of all of these among them; empty where nothing else fits.

    Seldom needed: too few degrees have a plan that is nearly as fast as the best one.
    """
    again = copy(search)
    again.start_again(Incumbent())
    again.alternatives = Alternatives(count - 1, again.result)
    again.plain, again.progress = part, None
    again.run()
    _solve(again)
    return again.result.by_degrees


def _still_wanted(search: Search, what: Postponed) -> Postponed:
    return what.take(np.flatnonzero(what.bounds < search.wanted_s(np.inf)))


def _expand(search: Search, layouts: Postponed) -> None:
    """Look at the leaves of some layouts for alternatives, the lowest bound first."""
    order = np.argsort(layouts.bounds, kind="stable")
    for start in range(0, len(order), MOST_LAYOUTS):
        picked = order[start : start + MOST_LAYOUTS]
        picked = picked[layouts.bounds[picked] < search.wanted_s(np.inf)]
        if len(picked) == 0 or search.late():
            return
        search.leaves(layouts.rows.take(picked), layouts.key[picked], layouts.table, np.inf)
        _solve(search)


def _solve(search: Search) -> None:
    found = search.result.by_degrees
    taken = {degrees(each) for each in search.alternatives.shown}
    while not search.late():
        waiting = search.alternatives.next_unsolved(search.wanted_s(np.inf), search.costs, search.rules)
        if waiting is None:
            return
        key, unsolved = waiting
        if key in taken:
            continue
        known = found.get(key)
        cutoff_s = search.alternatives.last_s() if known is None else known.step_time_s
        context = row_context(search.costs, unsolved.table, unsolved.row, unsolved.cost)
        candidate = search.solve(context, cutoff_s)
        if candidate is not None:
            found[degrees(candidate)] = candidate
