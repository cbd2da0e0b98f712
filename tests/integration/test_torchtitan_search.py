"""A search inside torchtitan's rules proposes only what its files can say."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.backends.torchtitan.read import read_back
from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.question.problem import Constraints, Problem, Workload
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
    plan = find_plan(problem(backends=("torchtitan",), pins=pins))
    made = emit_plan(plan, "torchrun")
    assert made.plan == plan
    assert read_back(made.files) == (plan.chosen(), layout_of(plan))
    if "recompute" in pins:
        for stage in plan.stages:
            assert stage.recompute.num_layers_per_chunk == tuple(chunk.num_layers for chunk in stage.chunks)


def test_micro_batches_that_are_no_multiple_of_pp_run_in_torchs_groups(tmp_path: Path) -> None:
    pins = {"schedule": "interleaved", "pp": 4, "num_microbatches": 6, "recompute": "full"}
    asked = problem(backends=("torchtitan",), pins=pins)
    asked = asked.model_copy(update={"workload": Workload(global_batch_size=48, sequence_length=8192)})
    plan = find_plan(asked)
    assert plan.chosen().microbatch_group_size == 6
    assert check_directory(write_emission(emit_plan(plan, "slurm"), tmp_path / "run")) == []


def test_no_plan_splits_backward_passes() -> None:
    with pytest.raises(NoFeasiblePlan, match=r"torchtitan\.P6"):
        find_plan(problem(backends=("torchtitan",), pins={"pp": 2, "schedule": "zbv"}))
