"""A back-end without a plan says why, in words that lead on."""

from __future__ import annotations

from typing import Any

import pytest

from planner.answers.replan.other_backend import plan_there
from planner.answers.throughput.quick_plan import quick_plan
from planner.backends.asked import why_not_these_devices
from planner.backends.registry import names_with_files, software, with_files
from planner.errors import BackEndRefused, NoFeasiblePlan, NotFound
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

QUICK = SearchOptions(top_k=0)


def asked(*backends: str, cluster: str = "dgx-h100", model: str = "llama-3.2-1b", **constraints: Any) -> Problem:
    return Problem(
        model=load_model(model),
        cluster=load_cluster(cluster, 8),
        workload=Workload(global_batch_size=16, sequence_length=2048),
        constraints=Constraints(backends=backends or ("any",), **constraints),
    )


@pytest.fixture(scope="module")
def plan() -> Plan:
    return find_plan(asked(), QUICK)


def test_a_back_end_that_cannot_train_on_the_devices_stands_in_the_table(plan: Plan) -> None:
    table = {row.backend: row for row in plan.backends}
    assert set(table) == set(names_with_files())
    elsewhere = [each for each in with_files() if "NVIDIA" not in each.vendors]
    assert elsewhere
    for each in elsewhere:
        row = table[each.name]
        assert row.step_time_s is None
        assert row.reason is not None
        assert f"trains on devices of {', '.join(sorted(each.vendors))}" in row.reason
        assert "made by NVIDIA" in row.reason
    assert [row.reason is None for row in plan.backends] == sorted(
        (row.reason is None for row in plan.backends), reverse=True
    )


@pytest.mark.parametrize("find", [find_plan, lambda problem: quick_plan(problem, 20.0)])
def test_where_nobody_trains_on_the_devices_each_says_so(find: Any) -> None:
    with pytest.raises(NoFeasiblePlan) as caught:
        find(asked("megatron", "torchtitan", cluster="ascend-910b-8"))
    said = str(caught.value)
    assert "megatron: trains on devices of " in said
    assert "torchtitan: trains on devices of " in said
    assert said.count("is made by Huawei") == 2
    assert any("--backend" in each for each in caught.value.relaxations)


def test_a_single_back_end_on_foreign_devices_is_told_alone() -> None:
    with pytest.raises(NoFeasiblePlan) as caught:
        find_plan(asked("mindspeed"), QUICK)
    assert "mindspeed can run no plan of this problem" in str(caught.value)
    assert "Huawei" in str(caught.value)
    wrong = why_not_these_devices(software("mindspeed"), asked("mindspeed"))
    assert wrong is not None
    assert wrong in str(caught.value)


def test_a_release_that_is_refused_is_named() -> None:
    with pytest.raises(NoFeasiblePlan, match=r"torchtitan==0\.2\.2 can run no plan of this problem"):
        find_plan(asked("torchtitan==0.2.2", cluster="ascend-910b-8"), QUICK)


def test_where_no_back_end_has_a_plan_each_names_its_reason() -> None:
    with pytest.raises(NoFeasiblePlan) as caught:
        find_plan(asked("accelerate", "torchtitan", "mindspeed", pins={"schedule": "looped_bfs", "pp": 2}), QUICK)
    said = str(caught.value)
    for name in ("accelerate", "torchtitan", "mindspeed"):
        assert f"{name}: " in said
    assert caught.value.relaxations
    assert not any(each.startswith("use --backend") for each in caught.value.relaxations), (
        "all that were asked were tried"
    )


def test_of_one_back_end_another_one_that_works_is_named() -> None:
    problem = asked("accelerate", pins={"pp": 2})
    with pytest.raises(NoFeasiblePlan) as caught:
        find_plan(problem, QUICK)
    (other,) = (each.split()[-1] for each in caught.value.relaxations if each.startswith("use --backend "))
    assert find_plan(asked(other, pins={"pp": 2}), QUICK).backend == other


def test_an_estimate_over_all_names_who_runs_it_and_who_does_not() -> None:
    found = estimate(asked(), Strategy(pp=2, dp_shard=4, num_microbatches=4))
    table = {row.backend: row for row in found.backends}
    assert set(table) == set(names_with_files())
    assert table["accelerate"].step_time_s is None
    assert "pipeline" in (table["accelerate"].reason or "")
    assert "trains on devices of" in (table["mindspeed"].reason or "")
    assert (found.backends[0].backend, found.backends[0].step_time_s) == (found.backend, found.step_time_s)


@pytest.mark.parametrize(("name", "where"), [("megatron-ml", "--backend"), ("megatron==0.1", "--backend")])
def test_an_unknown_back_end_or_release_is_not_found(name: str, where: str) -> None:
    with pytest.raises(NotFound) as caught:
        find_plan(asked(name), QUICK)
    assert caught.value.where == where
    assert "megatron" in str(caught.value.hint) or "0." in str(caught.value.hint)


def test_the_same_question_elsewhere_is_planned_there_and_compared(plan: Plan) -> None:
    other = next(row.backend for row in plan.backends[1:] if row.step_time_s is not None)
    there = plan_there(plan, other, QUICK)
    assert there.plan.backend == other
    assert there.plan.problem.constraints.backends == (other,)
    assert there.difference is not None
    assert there.difference.same_problem
    terms = sum(each.change for each in there.difference.breakdown_s)
    assert terms == pytest.approx(there.plan.step_time_s - plan.step_time_s)
    assert there.slower_by == pytest.approx(there.plan.step_time_s / plan.step_time_s - 1)
    assert there.slower_by >= -1e-9
    same = plan_there(plan, plan.backend, QUICK)
    assert same.plan is plan
    assert (same.difference, same.slower_by) == (None, 0.0)


def test_where_a_back_end_can_run_no_plan_of_a_question_it_is_refused(plan: Plan) -> None:
    with pytest.raises(BackEndRefused, match="mindspeed can run no plan") as caught:
        plan_there(plan, "mindspeed", QUICK)
    assert "MindSpeed" not in caught.value.what, "named once"
    with pytest.raises(NotFound, match="no files can be written"):
        plan_there(plan, "nanotron", QUICK)
    with pytest.raises(NotFound, match="no files can be written"):
        plan_there(plan, "megatron==2.5", QUICK)
