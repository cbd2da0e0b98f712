"""The plan is the optimum where the first layers of every chunk must be recomputed: against trying all."""

from __future__ import annotations

import math

import pytest

from planner.backends.asked import the_software
from planner.errors import NoFeasiblePlan
from planner.predict.cost.hardware import problem_hardware
from planner.question.problem import Constraints, Problem
from planner.search.backend_rules import BackEndRules
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.reliefs import relief_choices
from planner.search.row_context import strategy_context
from planner.search.split import best_split
from planner.search.split_limits import split_rules
from planner.strategy.relief_layers import first_layers
from tests.declared_space import all_rows
from tests.sampling import drawn
from tests.search_problems import Pin, Size, random_problem

SIZE = Size(max_devices=4, max_layers=8, max_batch=8, narrowings=1)


def _problem(seed: int, backend: str) -> Problem:
    problem = random_problem(seed, SIZE, backend)
    pins: dict[str, Pin] = {"recompute": first_layers(1 + seed % 3), "optimizer_offload": False}
    return problem.model_copy(update={"constraints": Constraints(backends=(backend,), pins=pins)})


def _best_s(problem: Problem) -> float:
    """The fastest of all strategies, each with its best dealing; no bound is asked."""
    hardware = problem_hardware(problem, the_software(problem).release.physics)
    rows, rules = all_rows(problem, problem.cluster.num_devices), split_rules(problem, hardware)
    best_s, refuser = math.inf, BackEndRules(problem)
    for index in range(len(rows)):
        strategy = rows.strategy(index, relief_choices(problem))
        if strategy.recompute != "full" or strategy.optimizer_offload or refuser.refuses(strategy):
            continue
        found = best_split(strategy_context(problem, hardware, strategy), rules)
        if found is not None and not refuser.refuses(found.strategy, found.split.chunk_layers):
            best_s = min(best_s, found.step_time_s)
    return best_s


SEVERAL_CHUNKS = 8301
"""The seed whose plan has several chunks."""


@pytest.mark.parametrize("seed", drawn(range(8300, 8305), 2, kept=(SEVERAL_CHUNKS,)))
def test_the_pinned_layers_are_relieved_and_nothing_is_faster(seed: int) -> None:
    problem = _problem(seed, "megatron")
    best_s = _best_s(problem)
    try:
        plan = find_plan(problem, SearchOptions(top_k=0, compare=False))
    except NoFeasiblePlan:
        assert math.isinf(best_s)
        return
    assert plan.step_time_s == pytest.approx(best_s, rel=1e-9)
    if seed == SEVERAL_CHUNKS:
        assert plan.strategy["vpp"] * plan.strategy["pp"] > 1
