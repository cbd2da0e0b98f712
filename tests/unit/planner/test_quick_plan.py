"""A quick plan is a real plan, never better than its bound nor than the best plan, and says when nothing fits."""

from __future__ import annotations

import pytest

from planner.answers.throughput.quick_plan import narrowed, quick_plan
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model, make_moe_model


def problem(devices: int, **changes: object) -> Problem:
    return Problem(
        model=make_model(4),
        cluster=load_cluster("dgx-a100-80g", devices),
        workload=Workload(global_batch_size=48, sequence_length=2048),
    ).model_copy(update=changes)


@pytest.mark.parametrize("devices", [1, 4, 8, 16, 24])
@pytest.mark.parametrize("model", [make_model(4), make_moe_model(4)], ids=["dense", "experts"])
def test_it_lies_between_its_bound_and_reality(devices: int, model: object) -> None:
    asked = problem(devices, model=model)
    quick, best = quick_plan(asked, 30), find_plan(asked, SearchOptions(top_k=0))
    assert quick.bound is not None
    assert quick.bound.step_time_s <= best.step_time_s * (1 + 1e-12)
    assert best.step_time_s <= quick.step_time_s * (1 + 1e-12)
    assert quick.step_time_s <= 1.1 * best.step_time_s
    assert quick.problem == asked
    assert quick.gap == pytest.approx(1 - quick.bound.step_time_s / quick.step_time_s)
    layers = tuple(
        chunk.num_layers for chunk in sorted((c for s in quick.stages for c in s.chunks), key=lambda chunk: chunk.chunk)
    )
    again = estimate(asked, quick.chosen(), layers, relief="where_needed")
    assert again.step_time_s == pytest.approx(quick.step_time_s)


def test_what_fits_only_with_help_is_found_in_the_whole_space() -> None:
    asked = problem(1, constraints=Constraints(pins={"micro_batch_size": 48}, memory_margin_fraction=0.7))
    assert quick_plan(asked, 30).step_time_s == pytest.approx(find_plan(asked).step_time_s)


def test_nothing_fits_or_nobody_knows() -> None:
    asked = problem(1, constraints=Constraints(memory_margin_fraction=0.995))
    with pytest.raises(NoFeasiblePlan):
        find_plan(asked)
    with pytest.raises(NoFeasiblePlan):
        quick_plan(asked, 30)
    with pytest.raises((BudgetSpent, NoFeasiblePlan)):
        quick_plan(asked, 1e-9)


def test_pins_of_the_asker_win() -> None:
    pins: dict[str, int | str | bool] = {"cp": 2, "micro_batch_size": 4}
    narrow = narrowed(Constraints(pins=pins, forbids=("vpp",)))
    assert (narrow.pins["cp"], narrow.pins["micro_batch_size"]) == (2, 4)
    assert "cp" not in narrow.forbids
    assert {"vpp", "optimizer_offload"} <= set(narrow.forbids)
    by_count = narrowed(Constraints(pins={"num_microbatches": 3}))
    assert "micro_batch_size" not in by_count.pins
