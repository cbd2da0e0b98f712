from __future__ import annotations

from pathlib import Path

import pytest

from planner.backends.checking.directory import check_directory
from planner.backends.emission.for_target import emit_for_target, inside_target
from planner.backends.emission.write import read_manifest, write_emission
from planner.errors import NotFound
from planner.model.load import load_model
from planner.plan import Plan
from planner.problem import Constraints, Problem, Workload
from planner.search.find import find_plan
from profiles.catalogue import load_cluster

TARGETS = ("megatron", "deepspeed", "native")


def problem(global_batch_size: int = 64, **constraints: object) -> Problem:
    return Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 16),
        workload=Workload(global_batch_size=global_batch_size, sequence_length=8192),
        constraints=Constraints.model_validate(constraints),
    )


@pytest.fixture(scope="module")
def beyond_all() -> Plan:
    """A plan that no target can express: torch runs zero-bubble H1 in whole rounds of micro-batches only."""
    wanted = problem(pins={"pp": 4, "schedule": "zb_h1", "num_microbatches": 9}, global_batch_size=72)
    return find_plan(wanted).model_copy(update={"problem": problem(global_batch_size=72)})


@pytest.mark.parametrize("target", ["megatron", "native", "deepspeed"])
def test_a_plan_searched_for_a_target_loses_nothing(target: str) -> None:
    plan = find_plan(problem(target=target))
    made = emit_for_target(plan, target, "torchrun")
    assert made.emission.projections == ()
    assert made.slower_by == 0.0
    assert made.emission.plan == plan


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_cannot_express_is_projected_with_numbers_of_its_own(
    target: str, beyond_all: Plan, tmp_path: Path
) -> None:
    made = emit_for_target(beyond_all, target, "torchrun")
    emitted = made.emission.plan
    assert "schedule" in {each.field for each in made.emission.projections}
    assert emitted.strategy["schedule"] != "zb_h1"
    assert emitted.status != "infeasible"
    assert emitted.peak_memory_bytes <= emitted.memory_limit_bytes
    assert made.slower_by == pytest.approx(emitted.step_time_s / beyond_all.step_time_s - 1)
    directory = write_emission(made.emission, tmp_path / target)
    assert check_directory(directory) == []
    assert read_manifest(directory)["projections"]
    assert "Given up" in (directory / "PLAN.md").read_text(encoding="utf-8")


def test_the_question_inside_a_target_differs_only_in_the_target() -> None:
    asked = problem()
    inside = inside_target(asked, "native")
    assert inside.constraints.target == "native"
    assert inside.model_copy(update={"constraints": asked.constraints}) == asked


def test_an_unknown_target_is_not_found(beyond_all: Plan) -> None:
    with pytest.raises(NotFound, match="jax"):
        emit_for_target(beyond_all, "jax", "torchrun")


def test_what_is_given_up_names_the_targets_that_keep_it(beyond_all: Plan) -> None:
    plan = find_plan(problem(pins={"pp": 2, "vpp": 2, "schedule": "zbv"})).model_copy(update={"problem": problem()})
    (schedule, *_) = emit_for_target(plan, "megatron", "torchrun").emission.projections
    assert schedule.field == "schedule"
    assert "native" in schedule.kept_by
    assert "deepspeed" not in schedule.kept_by
    (nobody, *_) = emit_for_target(beyond_all, "megatron", "torchrun").emission.projections
    assert nobody.kept_by == ()
