"""With a calibration the search still finds what trying everything finds, and the estimate agrees with the plan."""

from __future__ import annotations

import pytest

from planner.errors import NoFeasiblePlan
from planner.plan.plan import ChunkPlan, Plan
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.calibrated_problems import calibrated
from tests.exhaustive_search import exhaustive_best
from tests.sampling import drawn
from tests.search_problems import Size, random_problem


@pytest.mark.parametrize("seed", drawn(range(3000, 3010), 4))
def test_the_search_finds_the_best_calibrated_plan(seed: int) -> None:
    problem = calibrated(random_problem(seed, Size(max_devices=8, max_layers=5, max_batch=8), "unrestricted"), seed)
    best, _ = exhaustive_best(problem)
    if best is None:
        with pytest.raises(NoFeasiblePlan):
            find_plan(problem, SearchOptions(top_k=0))
        return
    plan = find_plan(problem, SearchOptions(top_k=0))
    assert plan.step_time_s == pytest.approx(best.step_time_s, rel=1e-9)
    assert sum(plan.breakdown_s.values()) == pytest.approx(plan.step_time_s, rel=1e-6)
    layers = tuple(chunk.num_layers for chunk in _chunks(plan))
    again = estimate(problem, plan.chosen(), layers, relief="where_needed")
    assert again.step_time_s <= plan.step_time_s * (1 + 1e-9)


def _chunks(plan: Plan) -> list[ChunkPlan]:
    return sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
