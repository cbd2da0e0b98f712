"""Is the closed form that the search minimises close to the event simulator?  On the plans that it chooses."""

from __future__ import annotations

import random
import statistics

import pytest

from planner.errors import NoFeasiblePlan
from planner.problem import UNRESTRICTED, Constraints
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.search_problems import Size, random_problem

SIZE = Size(max_devices=8, max_layers=6, max_batch=12, narrowings=0)


def _errors(schedule: str, seeds: range) -> list[float]:
    """Simulated over predicted step time, minus one, of the best plans on that schedule."""
    errors = []
    for seed in seeds:
        pins: dict[str, int | str | bool] = {"schedule": schedule, "cp": 1, "pp": random.Random(seed).choice([2, 4])}
        problem = random_problem(seed, SIZE, UNRESTRICTED).model_copy(
            update={"constraints": Constraints(backends=(UNRESTRICTED,), pins=pins)}
        )
        try:
            plan = find_plan(problem, SearchOptions(top_k=0))
        except NoFeasiblePlan:
            continue
        errors.append(plan.simulated_step_time_s / plan.step_time_s - 1)
    return errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "median", "worst"),
    [
        ("gpipe", 0.001, 0.02),
        ("1f1b", 0.005, 0.12),
        ("interleaved", 0.03, 0.12),
        ("zb_h1", 0.04, 0.10),
        ("zbv", 0.05, 0.12),
        ("dualpipev", 0.05, 0.12),
    ],
)
def test_chosen_plans_take_about_as_long_as_simulated(schedule: str, median: float, worst: float) -> None:
    errors = _errors(schedule, range(60))
    assert len(errors) >= 10
    assert statistics.median(abs(error) for error in errors) <= median
    assert max(abs(error) for error in errors) <= worst
