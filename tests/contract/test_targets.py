"""A target that one table names, every table names: emitters, search space, rank orders, command line."""

from __future__ import annotations

from typing import get_args

import pytest

from planner.backends.emission.emission import BackEndName, LauncherName
from planner.backends.launch.launchers import LAUNCHERS
from planner.backends.registry import TARGETS, named_release, target_module
from planner.cli.emitting import TARGET_NAMES, LauncherChoice
from planner.mesh import BACKEND_AXIS_ORDERS
from planner.model.load import load_model
from planner.problem import Constraints, Problem, Target, Workload
from planner.search.choices import TARGET_SPACES
from planner.search.find import find_plan
from profiles.catalogue import load_cluster

CLUSTERS = {"mindspeed": "ascend-910b-8"}


def test_every_table_names_every_target() -> None:
    names = set(get_args(BackEndName))
    assert names == set(TARGETS) == set(TARGET_NAMES) == set(get_args(Target)) - {"any"}
    assert set(TARGET_SPACES) == set(BACKEND_AXIS_ORDERS) == names | {"any"}


def test_every_table_names_every_launcher() -> None:
    assert set(get_args(LauncherName)) == set(LAUNCHERS) == {choice.value for choice in LauncherChoice}


@pytest.mark.parametrize("target", TARGETS)
def test_a_plan_inside_a_target_is_emitted_whole(target: BackEndName) -> None:
    problem = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster(CLUSTERS.get(target, "dgx-h100"), 8),
        workload=Workload(global_batch_size=16, sequence_length=4096),
        constraints=Constraints(target=target),
    )
    plan = find_plan(problem)
    module = target_module(target)
    assert module.project(plan) == (plan, ())
    emission = module.emit(plan, "torchrun", named_release(target)[1])
    assert emission.plan == plan
    assert module.read_back(emission.files)[0] == plan.chosen()
