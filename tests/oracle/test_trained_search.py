"""Exhaustive evaluation finds the same optimum where only adapters learn, or a reference model runs beside."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from planner.errors import NoFeasiblePlan
from planner.question.problem import UNRESTRICTED, Problem
from planner.question.training import Training
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.optimal_search import assert_search_is_optimal
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=6, max_layers=5, max_batch=8, narrowings=2)
KINDS: tuple[dict[str, Any], ...] = (
    {"kind": "lora", "rank": 8},
    {"kind": "qlora", "targets": "q,v"},
    {"kind": "full", "task": "dpo", "reference": "resident"},
    {"kind": "lora", "task": "dpo", "dora": True},
    {"kind": "full", "task": "dpo", "reference": "offloaded"},
    {"kind": "qlora", "task": "reward", "base": "int8", "ends": True},
)
MEMORY = {"lora": 0.45, "qlora": 0.3, "full": 1.0}
"""Of the memory that the problem was drawn with, so that relief and sharding still matter."""


def _problem(seed: int, said: dict[str, Any]) -> Problem:
    problem = random_problem(seed, SMALL, UNRESTRICTED)
    pool = problem.cluster.pools[0]
    memory = int(pool.device.memory_bytes * MEMORY[said["kind"]])
    device = pool.device.model_copy(update={"memory_bytes": memory})
    cluster = problem.cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device}),)})
    workload = problem.workload.model_copy(update={"training": Training.model_validate(said)})
    return problem.model_copy(update={"cluster": cluster, "workload": workload})


@pytest.mark.parametrize("number", drawn(range(24), 8, kind=lambda number: number % len(KINDS)))
def test_the_plan_is_the_optimum(number: int) -> None:
    problem = _problem(1200 + number, KINDS[number % len(KINDS)])
    assert_search_is_optimal(problem)


# About the questions of this file, not about the search: they change with the file.
@pytest.mark.thorough
def test_most_of_these_problems_have_a_plan_and_memory_decides() -> None:
    """The comparison above would say nothing if nothing fitted, or everything did."""
    found = list[str]()
    for said, seed in itertools.product(KINDS[:2], range(1200, 1212)):
        try:
            plan = find_plan(_problem(seed, said), SearchOptions(top_k=0))
        except NoFeasiblePlan:
            found.append("none")
            continue
        relieved = plan.strategy["recompute"] != "none" or plan.strategy["zero_stage"] >= 2
        found.append("tight" if relieved else "loose")
    assert found.count("none") < len(found) / 2
    assert found.count("tight") >= 2
