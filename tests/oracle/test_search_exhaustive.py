"""Nothing beats the proved plan: exhaustive evaluation of small random problems finds the same optimum."""

from __future__ import annotations

import itertools
from operator import itemgetter

import numpy as np
import pytest

from planner.backends.asked import problem_hardware, the_software
from planner.backends.registry import physics_by_name
from planner.errors import NoFeasiblePlan
from planner.plan.plan import Plan
from planner.predict.cost.hardware import problem_hardware as hardware_under
from planner.predict.memory.fit_chance import usable_bytes
from planner.question.problem import UNRESTRICTED, Problem
from planner.search.branch import Search
from planner.search.evaluate import evaluate_split
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.row_context import strategy_context
from tests.declared_space import all_rows
from tests.exhaustive_search import Best, exhaustive_best
from tests.measured_problems import random_profile
from tests.sampling import drawn, runs_whole
from tests.search_problems import Size, random_problem

QUICK = SearchOptions(top_k=0)
SMALL = Size(max_devices=6, max_layers=5, max_batch=8, narrowings=2)
LARGER = Size(max_devices=8, max_layers=6, max_batch=12, narrowings=2)
WIDE = Size(max_devices=16, max_layers=4, max_batch=6, narrowings=3)
OTHER_PHYSICS = sorted(set(physics_by_name()) - {"tuned"})
UNDER_PHYSICS = list(itertools.product(OTHER_PHYSICS, range(940, 946)))
SOME_UNDER_PHYSICS = drawn(UNDER_PHYSICS, len(OTHER_PHYSICS), kind=itemgetter(0))
MANY_WITH_PLAN, WIDE_WITH_PLAN = (1000, 1025, 1089, 1110), (3000, 3009, 3016, 3027)
"""Of many problems, and of those on sixteen devices, some that have a plan."""


def _agree(problem: Problem) -> bool:
    """Whether there is a plan; fails unless search and exhaustive evaluation say the same."""
    best, _ = exhaustive_best(problem)
    try:
        plan = find_plan(problem, QUICK)
    except NoFeasiblePlan:
        assert best is None, f"a plan was missed: {best}"
        return False
    assert best is not None, "a plan was found that exhaustive evaluation says does not fit"
    assert plan.status == "optimal"
    assert plan.step_time_s == pytest.approx(best.step_time_s, rel=1e-9), best
    assert plan.lower_bound_s == plan.step_time_s
    _same_numbers(problem, best)
    _within_limits(plan)
    return True


def _same_numbers(problem: Problem, best: Best) -> None:
    """The planner's own evaluation of the oracle's winner says what the oracle says."""
    hardware = problem_hardware(problem)
    candidate = evaluate_split(strategy_context(problem, hardware, best.strategy), best.split)
    assert candidate.step_time_s == pytest.approx(best.step_time_s, rel=1e-9)
    usable = usable_bytes(hardware.memory_bytes, problem.constraints, the_software(problem).name)
    assert candidate.peak_memory_bytes <= usable + 1e-8 * hardware.memory_bytes


def _within_limits(plan: Plan) -> None:
    assert plan.peak_memory_bytes <= plan.memory_limit_bytes + 1e-8 * plan.memory_limit_bytes
    assert sum(stage.layers for stage in plan.stages) == plan.problem.model.num_layers


@pytest.mark.parametrize("seed", drawn(range(900, 915), 5))
def test_the_plan_is_the_optimum_of_measured_times_as_well(seed: int) -> None:
    problem = random_problem(seed, SMALL, UNRESTRICTED)
    _agree(problem.model_copy(update={"profile": random_profile(problem, seed)}))


@pytest.mark.parametrize(("physics", "seed"), SOME_UNDER_PHYSICS)
def test_the_optimum_is_found_under_the_physics_of_every_back_end(physics: str, seed: int) -> None:
    problem = random_problem(seed, SMALL, UNRESTRICTED)
    hardware = hardware_under(problem, physics_by_name()[physics])
    best, _ = exhaustive_best(problem, hardware=hardware)
    found = Search(problem, hardware, QUICK).run()
    assert found.complete
    assert (found.best is None) == (best is None)
    if found.best is not None and best is not None:
        assert found.best.step_time_s == pytest.approx(best.step_time_s, rel=1e-9), best
        assert found.lower_bound_s == found.best.step_time_s


@pytest.mark.parametrize("seed", drawn(range(40), 12))
def test_nothing_beats_the_plan_of_a_small_problem(seed: int) -> None:
    _agree(random_problem(seed, SMALL))


def test_the_small_problems_are_of_every_kind() -> None:
    """The oracle is only worth its name if its problems differ: back-ends, devices, with and without a plan."""
    problems = [random_problem(seed, SMALL) for seed in range(40)]
    assert len({problem.constraints.backends for problem in problems}) == 4
    assert len({problem.cluster.num_devices for problem in problems}) >= 4
    assert len({len(problem.model.layer_kinds) for problem in problems}) == 2
    assert {problem.model.mtp is not None for problem in problems} == {True, False}


@pytest.mark.parametrize("seed", drawn(range(20), 8))
def test_the_declared_space_is_what_the_search_enumerates(seed: int) -> None:
    """Search and oracle count the same strategies: nothing is dropped that no rule names."""
    problem = random_problem(100 + seed, SMALL, UNRESTRICTED)
    hardware = problem_hardware(problem)
    space = Search(problem, hardware, QUICK).space
    cores = space.cores
    layouts, key = space.layouts(cores, np.arange(len(cores)))
    shardings, key = space.shardings(layouts, key)
    leaves, _ = space.leaves(shardings, key)
    found = {leaves.strategy(index, space.reliefs) for index in range(len(leaves))}
    rows = all_rows(problem, problem.cluster.num_devices)
    # Overlapping the expert exchange is never slower, so the search takes only that value.
    wanted = {rows.strategy(index, space.reliefs) for index in range(len(rows))}
    wanted = {one for one in wanted if one.overlap_ep == (one.ep > 1) or problem.constraints.forbids}
    assert len(found) == len(leaves), "no strategy is enumerated twice"
    assert found == wanted


@pytest.mark.slow
def test_nothing_beats_the_plan_of_many_problems() -> None:
    seeds = drawn(range(1000, 1120), 20, kept=MANY_WITH_PLAN)
    for first in range(0, len(seeds), 20):
        assert sum(_agree(random_problem(seed, LARGER)) for seed in seeds[first : first + 20]) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("backend", [UNRESTRICTED, "megatron", "deepspeed", "native"])
def test_nothing_beats_the_plan_inside_a_back_end(backend: str) -> None:
    with_plan = sum(_agree(random_problem(seed, LARGER, backend)) for seed in drawn(range(2000, 2012), 5))
    assert with_plan >= 4 or not runs_whole()


@pytest.mark.slow
def test_nothing_beats_the_plan_on_sixteen_devices() -> None:
    seeds = drawn(range(3000, 3030), 8, kept=WIDE_WITH_PLAN)
    with_plan = sum(_agree(random_problem(seed, WIDE, UNRESTRICTED)) for seed in seeds)
    assert with_plan >= (10 if runs_whole() else len(WIDE_WITH_PLAN))
