"""Which plans of other degrees stand next to the best one?

When a search is over, the strategies that it left out for the best plan's sake may still be the best of their own
degrees.  Those of the lowest bounds are solved until no bound that is left can be an alternative.
"""

from __future__ import annotations

import numpy as np

from planner.candidate import Candidate
from planner.search.alternatives import Postponed
from planner.search.branch import MANY_LAYOUTS, Search
from planner.search.row_context import row_context
from planner.search.search_result import degrees


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
    return search.result.others(shown)[:count]


def _still_wanted(search: Search, what: Postponed) -> Postponed:
    return what.take(np.flatnonzero(what.bounds < search.wanted_s(np.inf)))


def _expand(search: Search, layouts: Postponed) -> None:
    """Look at the leaves of some layouts for alternatives, the lowest bound first."""
    order = np.argsort(layouts.bounds, kind="stable")
    for start in range(0, len(order), MANY_LAYOUTS):
        picked = order[start : start + MANY_LAYOUTS]
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
