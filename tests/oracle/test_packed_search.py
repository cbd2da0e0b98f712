"""Exhaustive evaluation finds the same optimum where documents of unequal lengths are packed or padded."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from planner.errors import NoFeasiblePlan
from planner.question.problem import UNRESTRICTED, Problem
from planner.question.sequences import Sequences
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.optimal_search import assert_search_is_optimal
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=6, max_layers=5, max_batch=8, narrowings=2)
LENGTHS: tuple[dict[str, Any], ...] = (
    {"kind": "packed", "mean": 0.2},
    {"kind": "packed", "mean": 0.4, "packing": "concatenated"},
    {"kind": "packed", "mean": 0.3, "packing": "balanced"},
    {"kind": "padded", "mean": 0.4},
)
"""Means over the sequence length."""
LONGER, MEMORY = 8, 20
"""Times the sequence length and the memory that the problem was drawn with."""


def _problem(seed: int, said: dict[str, Any]) -> Problem:
    """Long sequences, so that attention is a part of the step that its unevenness can move; every other without pp."""
    problem = random_problem(seed, SMALL, UNRESTRICTED)
    tokens, pool = LONGER * problem.workload.sequence_length, problem.cluster.pools[0]
    device = pool.device.model_copy(update={"memory_bytes": MEMORY * pool.device.memory_bytes})
    cluster = problem.cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device}),)})
    lengths = Sequences.model_validate(said | {"mean": said["mean"] * tokens})
    workload = problem.workload.model_copy(update={"sequences": lengths, "sequence_length": tokens})
    forbids = tuple(dict.fromkeys((*problem.constraints.forbids, *(("pp",) if seed % 2 else ()))))
    pinned = {name: value for name, value in problem.constraints.pins.items() if name != "pp"}
    constraints = problem.constraints.model_copy(update={"forbids": forbids, "pins": pinned})
    return problem.model_copy(update={"workload": workload, "cluster": cluster, "constraints": constraints})


@pytest.mark.parametrize("number", drawn(range(24), 8, kind=lambda number: number // 2 % len(LENGTHS)))
def test_the_plan_is_the_optimum(number: int) -> None:
    problem = _problem(1500 + number, LENGTHS[number // 2 % len(LENGTHS)])
    assert_search_is_optimal(problem)


# About the questions of this file, not about the search: they change with the file.
@pytest.mark.thorough
def test_most_of_these_problems_have_a_plan_and_documents_move_it() -> None:
    """The comparison above would say nothing if nothing fitted, or if documents changed no time."""
    moved, found = 0, 0
    for said, seed in itertools.product(LENGTHS[:1], range(1500, 1508)):
        problem = _problem(seed, said)
        whole = problem.model_copy(update={"workload": problem.workload.model_copy(update={"sequences": None})})
        try:
            times = [find_plan(each, SearchOptions(top_k=0)).step_time_s for each in (problem, whole)]
        except NoFeasiblePlan:
            continue
        found += 1
        moved += times[0] < times[1] * 0.9999
    assert found >= 4
    assert moved >= found / 2
