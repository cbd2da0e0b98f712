"""Exhaustive evaluation finds the same optimum for models with an encoder beside the decoder."""

from __future__ import annotations

import random

import pytest

from planner.errors import NoFeasiblePlan
from planner.question.problem import UNRESTRICTED, Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.encoder_decoders import random_encoder_decoder
from tests.optimal_search import assert_search_is_optimal
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=6, max_layers=5, max_batch=8, narrowings=1)
MEMORY = 4
"""Times the memory that the problem was drawn with."""


def _problem(seed: int) -> Problem:
    """A random problem about an encoder-decoder; of every second the source is not as long as the target."""
    draw = random.Random(seed)
    problem = random_problem(seed, SMALL, UNRESTRICTED)
    pool = problem.cluster.pools[0]
    device = pool.device.model_copy(update={"memory_bytes": MEMORY * pool.device.memory_bytes})
    cluster = problem.cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device}),)})
    tokens = problem.workload.sequence_length
    source = draw.choice([tokens // 2, 2 * tokens]) if seed % 2 else None
    pins = {name: value for name, value in problem.constraints.pins.items() if name not in ("pp", "cp", "schedule")}
    return problem.model_copy(
        update={
            "model": random_encoder_decoder(draw),
            "cluster": cluster,
            "workload": problem.workload.model_copy(update={"source_length": source, "routing": None}),
            "constraints": problem.constraints.model_copy(update={"pins": pins}),
        }
    )


@pytest.mark.parametrize("seed", drawn(range(1700, 1716), 5))
def test_the_plan_is_the_optimum(seed: int) -> None:
    problem = _problem(seed)
    plan = assert_search_is_optimal(problem)
    if plan is None:
        return
    assert plan.strategy["pp"] == plan.strategy["cp"] == 1


# About the questions of this file, not about the search: they change with the file.
@pytest.mark.thorough
def test_most_of_these_problems_have_a_plan_and_the_source_moves_it() -> None:
    """The comparison above would say nothing if nothing fitted, or if the source's length changed no time."""
    moved, found = 0, 0
    for seed in range(1701, 1716, 2):
        problem = _problem(seed)
        even = problem.model_copy(update={"workload": problem.workload.model_copy(update={"source_length": None})})
        try:
            times = [find_plan(each, SearchOptions(top_k=0)).step_time_s for each in (problem, even)]
        except NoFeasiblePlan:
            continue
        found += 1
        moved += abs(times[0] / times[1] - 1) > 0.01
    assert found >= 4
    assert moved >= found / 2
