"""A plan written for another back-end: planned there, stored, told; the files are that plan's, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.answers.replan.other_backend import plan_there
from planner.backends.asked import inside, software_of
from planner.backends.emission.write import read_manifest, write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.backends.registry import names_with_files, software
from planner.errors import BackEndRefused, NotFound
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.recheck import recheck_plan
from planner.store import open_store
from profiles.catalogue import load_cluster

QUICK = SearchOptions(top_k=0)
HERE = [name for name in names_with_files() if "NVIDIA" in software(name).backend.vendors]


def problem() -> Problem:
    return Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 16),
        workload=Workload(global_batch_size=64, sequence_length=8192),
    )


@pytest.fixture(scope="module")
def plan() -> Plan:
    return find_plan(problem(), QUICK)


@pytest.mark.parametrize("backend", HERE)
def test_the_files_are_of_the_best_plan_there_and_it_is_stored(backend: str, plan: Plan, tmp_path: Path) -> None:
    there = plan_there(plan, backend, QUICK)
    assert software_of(there.plan) == software(backend)
    row = next(row for row in plan.backends if row.backend == backend)
    assert row.lower_bound_s is not None
    assert row.step_time_s is not None
    assert row.lower_bound_s * (1 - 1e-9) <= there.plan.step_time_s <= row.step_time_s * (1 + 1e-9)
    if there.difference is not None:
        recheck_plan(there.plan, inside(problem(), software(backend)))
    with open_store(f"sqlite:///{tmp_path / 'plans.db'}") as store:
        stored = store.get_plan(store.save_plan(there.plan))
    folder = write_emission(emit_plan(stored, "torchrun"), tmp_path / "out")
    manifest = read_manifest(folder)
    assert manifest["plan_id"] == there.plan.plan_id
    assert (manifest["backend"], manifest["release"]) == (there.plan.backend, there.plan.release)
    assert check_directory(folder) == []


def test_the_difference_is_told_term_by_term(plan: Plan) -> None:
    other = next(name for name in HERE if name != plan.backend and plan_there(plan, name, QUICK).slower_by > 0.001)
    difference = plan_there(plan, other, QUICK).difference
    assert difference is not None
    assert sum(term.change for term in difference.breakdown_s) == pytest.approx(difference.step_time_s.change)
    assert f"Back-end: {plan.backend} {plan.release} -> {other} " in difference.summary
    assert "more time a step" in difference.summary


@pytest.mark.parametrize("name", ["jax", "megatron==9.9"])
def test_an_unknown_back_end_or_release_is_not_found(plan: Plan, name: str) -> None:
    with pytest.raises(NotFound):
        plan_there(plan, name, QUICK)


def test_a_back_end_that_can_run_no_plan_of_the_question_is_refused_with_its_reason(plan: Plan) -> None:
    elsewhere = next(name for name in names_with_files() if name not in HERE)
    with pytest.raises(BackEndRefused, match="trains on devices of"):
        plan_there(plan, elsewhere, QUICK)


def test_a_plan_of_the_unrestricted_space_has_no_files_and_its_question_has_plans_elsewhere(plan: Plan) -> None:
    free = find_plan(inside(problem(), software("unrestricted")), QUICK)
    with pytest.raises(NotFound, match="no files can be written for unrestricted"):
        emit_plan(free, "torchrun")
    there = plan_there(free, plan.backend, QUICK)
    assert there.plan.strategy == plan.strategy
    assert there.plan.step_time_s == plan.step_time_s
