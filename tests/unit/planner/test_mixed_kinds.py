"""Where no kind has more than half of the layers all of them count: the bounds rule out more, and nothing faster."""

from __future__ import annotations

import numpy as np

from planner.backends.asked import problem_hardware
from planner.model.load import load_model
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.bound import BoundTerms
from planner.search.branch import Search
from planner.search.leaves import Leaves
from planner.search.memory_bound import relief_bounds_s
from planner.search.options import SearchOptions
from planner.search.row_context import row_context
from planner.search.setups import shardings_by_setup
from planner.search.split import best_split
from profiles.catalogue import load_cluster
from solver.arrays import Array, Ints
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=8, max_layers=8, max_batch=12, narrowings=2)
STRATEGIES = 25
ROUNDING = 1 + 1e-9


def searches() -> list[Search]:
    """Of models without a kind that has more than half of the layers."""
    found = []
    for seed in range(5000, 5120):
        problem = random_problem(seed, SMALL, UNRESTRICTED)
        search = Search(problem, problem_hardware(problem), SearchOptions(top_k=0))
        counts = search.costs.kind_counts
        if len(counts) > 1 and 2 * counts.max() <= counts.sum() and len(search.space.cores):
            found.append(search)
    return found[:8]


def leaves_of(search: Search) -> tuple[BoundTerms, Leaves]:
    """All leaves with their bounds."""
    cores = search.space.cores
    table, key = search.costs.keyed(cores)
    layouts, key = search.space.layouts(cores, key)
    shared = shardings_by_setup(search.costs, search.space, layouts, (table, key), None)
    assert shared is not None
    at = shared.promising(np.inf, search.rules.limit_bytes)
    terms, reliefs = shared.bound_terms(at), search.space.relief_codes
    terms.all_count = True
    return terms, Leaves(terms, reliefs, table, relief_bounds_s(terms, table.layers, reliefs, search.limits), at)


def steps_s(search: Search, leaves: Leaves, index: Ints) -> Array:
    """Exact step times of some leaves; infinity where nothing fits."""
    steps = np.full(len(index), np.inf)
    for place, one in enumerate(index.tolist()):
        row, cost = leaves.written_out(np.array([one]))
        found = best_split(row_context(search.costs, leaves.table, row, cost), search.rules)
        steps[place] = np.inf if found is None else found.step_time_s
    return steps


def test_no_leaf_of_mixed_kinds_is_faster_than_its_bound() -> None:
    ruled_out = fast = 0
    for search in searches():
        terms, leaves = leaves_of(search)
        # Evenly from all of them: also what no longer is in the order.
        index = np.arange(0, len(leaves.bounds), len(leaves.bounds) // STRATEGIES + 1)
        exact_s = steps_s(search, leaves, index)
        assert (leaves.bounds[index] <= exact_s * ROUNDING).all()
        fits_s = np.sort(exact_s[np.isfinite(exact_s)])
        for cutoff_s in fits_s[:: len(fits_s) // 3 + 1].tolist():
            below = relief_bounds_s(terms, leaves.table.layers, leaves.reliefs, search.limits, cutoff_s).ravel()[index]
            faster = exact_s < cutoff_s / ROUNDING
            assert (below[faster] <= exact_s[faster] * ROUNDING).all()
            fast += int(faster.sum())
            ruled_out += int(np.isinf(below).sum())
    assert ruled_out > 30
    assert fast > 30


def test_all_layers_count_where_that_bounds_more() -> None:
    """GPT-OSS has full and sliding attention in turns: half of its layers bound hardly any leaf as closely."""
    problem = Problem(
        model=load_model("gpt-oss-20b"),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=64, sequence_length=4096),
        constraints=Constraints(backends=("megatron",), pins={"pp": 4, "tp": 1, "cp": 1, "micro_batch_size": 1}),
    )
    search = Search(problem, problem_hardware(problem), SearchOptions(top_k=0))
    terms, leaves = leaves_of(search)
    assert BoundTerms(search.costs, terms.rows, terms.cost).all_count
    terms.all_count = False
    half_s = relief_bounds_s(terms, leaves.table.layers, leaves.reliefs, search.limits).ravel()
    assert (leaves.bounds >= half_s / ROUNDING).mean() > 0.99
    assert (leaves.bounds > half_s * ROUNDING).mean() > 0.2


def test_the_most_frequent_kind_counts_where_it_is_more() -> None:
    """Dense layers between those with experts are so light that all layers as light as they are bound less."""
    seen = set[bool]()
    for search in searches():
        terms, _ = leaves_of(search)
        all_s = search.costs.kind_counts.sum() * terms.cost.layer_s.min(axis=1)
        more = all_s.sum() > terms.major_count * terms.cost.layer_s[:, terms.major].sum()
        assert BoundTerms(search.costs, terms.rows, terms.cost).all_count == more
        seen.add(bool(more))
    assert False in seen
