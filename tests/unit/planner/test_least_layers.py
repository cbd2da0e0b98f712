"""What no layer could be light enough for is left out, and nothing else: against the exact search."""

from __future__ import annotations

import numpy as np

from planner.backends.asked import problem_hardware
from planner.question.problem import UNRESTRICTED
from planner.search.bound import BoundTerms
from planner.search.branch import Search
from planner.search.least_layers import kinds_are_mixed, may_be_faster
from planner.search.leaves import Leaves
from planner.search.memory_bound import relief_bounds_s
from planner.search.options import SearchOptions
from planner.search.row_context import row_context
from planner.search.setups import shardings_by_setup
from planner.search.split import best_split
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=8, max_layers=8, max_batch=12, narrowings=2)
STRATEGIES = 25


def searches() -> list[Search]:
    """Of models without a kind that has more than half of the layers."""
    found = []
    for seed in range(5000, 5120):
        problem = random_problem(seed, SMALL, UNRESTRICTED)
        search = Search(problem, problem_hardware(problem), SearchOptions(top_k=0))
        if kinds_are_mixed(search.costs) and len(search.costs.kind_counts) > 1 and len(search.space.cores):
            found.append(search)
    return found[:8]


def some_leaves(search: Search) -> tuple[Leaves, np.ndarray]:
    """Leaves that the bounds without the other kinds let pass, evenly from all of them."""
    cores = search.space.cores
    table, key = search.costs.keyed(cores)
    layouts, key = search.space.layouts(cores, key)
    shared = shardings_by_setup(search.costs, search.space, layouts, (table, key), None)
    assert shared is not None
    at = shared.promising(np.inf, search.rules.limit_bytes)
    terms, reliefs = shared.bound_terms(at), search.space.relief_codes
    leaves = Leaves(terms, reliefs, table, relief_bounds_s(terms, table.layers, reliefs, search.limits), at)
    return leaves, leaves.order[:: len(leaves.order) // STRATEGIES + 1]


def test_only_what_is_not_faster_is_left_out() -> None:
    left_out = fast = 0
    for search in searches():
        leaves, index = some_leaves(search)
        for one in index.tolist():
            row, cost = leaves.written_out(np.array([one]))
            found = best_split(row_context(search.costs, leaves.table, row, cost), search.rules)
            step_s = np.inf if found is None else found.step_time_s
            tail_s = BoundTerms(search.costs, row, cost).tail_s
            for cutoff_s in (0.5, 0.7, 0.9, 1.0 + 1e-9, 1.2):
                below_s = cutoff_s * (1.0 if found is None else step_s)
                if may_be_faster(search.costs, search.rules, (row, cost), tail_s, below_s)[0]:
                    fast += 1
                else:
                    left_out += 1
                    assert step_s >= below_s
    assert left_out > 30
    assert fast > 30


def test_kinds_are_mixed_where_none_has_more_than_half() -> None:
    search = searches()[0]
    for counts, mixed in (((4, 4), True), ((5, 4), False), ((3, 3, 3), True), ((8,), False)):
        search.costs.kind_counts = np.array(counts, dtype=np.float64)
        assert kinds_are_mixed(search.costs) == mixed
