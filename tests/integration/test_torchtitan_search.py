"""Does a search inside torchtitan's rules propose only what its files can say?"""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.backends.checking.directory import check_directory
from planner.backends.emission.for_target import emit_for_target
from planner.backends.emission.write import write_emission
from planner.model.load import load_model
from planner.problem import Constraints, Problem, Workload
from planner.search.find import find_plan
from profiles.catalogue import load_cluster

pytestmark = pytest.mark.slow


def problem(**constraints: object) -> Problem:
    return Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 16),
        workload=Workload(global_batch_size=64, sequence_length=8192),
        constraints=Constraints.model_validate(constraints),
    )


@pytest.mark.parametrize(
    "pins",
    [{}, {"recompute": "full"}, {"pp": 4, "recompute": "full"}, {"schedule": "interleaved", "recompute": "full"}],
    ids=str,
)
def test_a_plan_searched_for_torchtitan_loses_nothing(pins: dict[str, object]) -> None:
    plan = find_plan(problem(target="torchtitan", pins=pins))
    made = emit_for_target(plan, "torchtitan", "torchrun")
    assert made.emission.projections == ()
    assert made.emission.plan == plan
    if "recompute" in pins:
        for stage in plan.stages:
            assert stage.recompute.num_layers_per_chunk == tuple(chunk.num_layers for chunk in stage.chunks)


def test_a_plan_of_another_target_is_projected_with_numbers_of_its_own(tmp_path: Path) -> None:
    wanted = find_plan(problem(pins={"pp": 2, "schedule": "zb_h1"})).model_copy(update={"problem": problem()})
    made = emit_for_target(wanted, "torchtitan", "slurm")
    assert "schedule" in {each.field for each in made.emission.projections}
    assert made.emission.plan.peak_memory_bytes <= made.emission.plan.memory_limit_bytes
    assert check_directory(write_emission(made.emission, tmp_path / "run")) == []
