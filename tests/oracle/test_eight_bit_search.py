"""Exhaustive evaluation finds the same optimum where an 8-bit run keeps copies of its layers' weights."""

from __future__ import annotations

import pytest

from planner.errors import NoFeasiblePlan
from planner.question.problem import Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.optimal_search import assert_search_is_optimal
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=6, max_layers=5, max_batch=8, narrowings=2)
SEEDS = range(4300, 4316)
EIGHT_BIT_RATE = 1979e12


def _problem(seed: int, precision: str = "fp8") -> Problem:
    problem = random_problem(seed, SMALL, "megatron")
    pool = problem.cluster.pools[0]
    rates = {**pool.device.peak_flops_per_s, "fp8": EIGHT_BIT_RATE}
    device = pool.device.model_copy(update={"peak_flops_per_s": rates})
    cluster = problem.cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device}),)})
    workload = problem.workload.model_copy(update={"precision": precision})
    return problem.model_copy(update={"cluster": cluster, "workload": workload})


@pytest.mark.parametrize("seed", drawn(SEEDS, 4))
def test_the_plan_is_the_optimum(seed: int) -> None:
    problem = _problem(seed)
    assert_search_is_optimal(problem)


# About the questions of this file, not about the search: they change with the file.
@pytest.mark.thorough
def test_memory_differs_from_sixteen_bit() -> None:
    """The comparison above would say nothing if 8 bit kept what 16 bit keeps."""
    differ = 0
    for seed in SEEDS:
        try:
            plans = [find_plan(_problem(seed, precision), SearchOptions(top_k=0)) for precision in ("fp8", "bf16")]
        except NoFeasiblePlan:
            continue
        differ += plans[0].peak_memory_bytes != plans[1].peak_memory_bytes
    assert differ >= 5
