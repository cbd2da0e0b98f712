"""The strategies of a part of a space that may be as fast as asked and within a limit, each with a bound.

A search that is over knows them: what it left out is slower than ``Search.wanted_s``, all else it bounded, or kept in
mind with the bound of its core or layout.  Where it was not looked at as far as is asked, it is descended once more.
"""

from __future__ import annotations

from planner.search.branch import Search
from planner.search.dealt_later import Collected
from planner.search.near_leaves import NearLeaves


def collect(search: Search, first: Search, cutoff_s: float) -> Collected:
    """The strategies of ``search`` that may be faster than ``cutoff_s``, in the order in which it meets them.

    ``first``: the search that is over, of the whole space, under limits that are no tighter.
    """
    search.collected = []
    known = first.alternatives
    if not (known.keeps_near and first.result.complete and first.wanted_s(float("inf")) >= cutoff_s):
        search.descend_waves(cutoff_s)
        return search.collected
    for leaves in NearLeaves.together(known.leaves):
        near = leaves.below(search.wanted_s(cutoff_s), search.plain)
        if len(near.rows):
            search.solve_in_order(near.within(search.costs, search.limits, search.wanted_s(cutoff_s)), cutoff_s)
    for cores in known.cores:
        search.layouts_in_order(search.bounded_layouts(cores, cutoff_s), cutoff_s)
    for layouts in known.layouts:
        kept = layouts if search.plain is None else layouts.take(search.plain.keeps(layouts.rows).nonzero()[0])
        search.layouts_in_order(kept, cutoff_s)
    return search.collected
