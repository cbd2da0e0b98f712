"""Explanations of plans over unequal devices: the split, another choice, one more node."""

from __future__ import annotations

from functools import cache

import pytest

from planner.answers.explain.why import explain
from planner.answers.explain.why_not import why_not
from planner.answers.over_pools import clusters_of, is_over_pools, split_sentences
from planner.answers.sensitivity import sensitivity
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.search.pools.launchable import launchable_plan
from tests.unequal_devices import devices, plan_of, question


@cache
def runnable() -> Plan:
    pins: dict[str, int | str | bool] = {"tp": 1, "micro_batch_size": 1, "zero_stage": 0, "recompute": "none"}
    return launchable_plan(plan_of(question(devices("slow", 1, 3.0), devices("fast", 2, 1.0), layers=9, **pins)))


def test_a_plan_over_pools_says_why_its_layers_are_split_so() -> None:
    plan = runnable()
    assert is_over_pools(plan)
    told = explain(plan)
    assert told.neighbours == ()
    pace, *pools, moved = split_sentences(plan)
    assert {pace, *pools, moved} <= set(told.sentences)
    slowest = max(plan.stages, key=lambda stage: stage.forward_s + stage.backward_s)
    assert f"Stage {slowest.stage} on " in pace
    assert f"{slowest.layers} layers take {(slowest.forward_s + slowest.backward_s) * 1e3:.1f} ms" in pace
    assert [line.split()[0] for line in pools] == list(dict.fromkeys(pool.name for pool in plan.problem.cluster.pools))
    assert sum(int(line.split("holds ")[1].split()[0]) for line in pools) == 9
    assert "layer" in moved
    sends = {line.stage: line for line in told.communication if line.operation == "send_recv"}
    ways = {0: 1, 1: 2, 2: 1}  # a stage between two sends states and gradients
    assert {stage: line.calls_per_step for stage, line in sends.items()} == {
        stage: count * plan.chosen().num_microbatches for stage, count in ways.items()
    }
    workload, hidden = plan.problem.workload, plan.problem.model.hidden_size
    tokens = workload.global_batch_size * workload.sequence_length / plan.chosen().dp
    assert sends[0].bytes_per_step == 2 * hidden * tokens


def test_the_nodes_of_a_plan_make_its_question_again() -> None:
    plan = runnable()
    again = {cluster.name: cluster.num_devices for cluster in clusters_of(plan)}
    assert again == {pool.name: pool.num_devices for pool in plan.problem.cluster.pools}
    assert sum(each.num_devices for each in clusters_of(plan, {"fast": 1})) > sum(again.values())


def test_another_choice_is_searched_over_the_same_nodes() -> None:
    plan = runnable()
    answer = why_not(plan, {"pp": 2})
    assert answer.possible
    assert answer.other is not None
    assert (plan.strategy["pp"], answer.other.strategy["pp"]) == (3, 2)
    assert (answer.slower_by or 0.0) >= -1e-9
    assert answer.other.problem.cluster.num_devices <= plan.problem.cluster.num_devices


def test_one_more_node_of_each_pool_is_searched() -> None:
    plan = runnable()
    answer = sensitivity(plan)
    assert {point.lever for point in answer.points} == {"one more node of slow", "one more node of fast"}
    assert all(point.best_step_time_s is None or point.best_step_time_s > 0 for point in answer.points)
    assert "one more node of fast" in answer.summary
    with pytest.raises(DocumentInvalid, match="searched again"):
        sensitivity(plan, replan=False)
