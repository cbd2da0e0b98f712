"""The fewest devices are the fewest and the cheapest plan the cheapest: against planning every count by itself."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import pytest

from planner.errors import BudgetSpent, DocumentInvalid, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import UNRESTRICTED, Constraints, Objective, Problem, Workload
from planner.search.device_counts import cut_to, device_counts, pareto_front
from planner.search.find import find_plan, plan_on_all_devices
from planner.search.options import SearchOptions
from tests.plan_factory import make_cluster, make_model

QUICK = SearchOptions(top_k=0)


def _problem(minimize: str, memory_gib: float = 16.0, **constraints: float) -> Problem:
    cluster = make_cluster(32, devices_per_node=4)
    pool = cluster.pools[0]
    device = pool.device.model_copy(update={"memory_bytes": int(memory_gib * 2**30)})
    cluster = cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device}),)})
    return Problem(
        model=make_model(6),
        cluster=cluster,
        workload=Workload(global_batch_size=24, sequence_length=2048),
        constraints=Constraints.model_validate(
            {"backends": (UNRESTRICTED,), "forbids": ("optimizer_offload", "activation_offload", "cp"), **constraints}
        ),
        objective=Objective.model_validate({"minimize": minimize}),
    )


def _by_count(problem: Problem, counts: Iterable[int] = ()) -> dict[int, Plan]:
    """The fastest plan of each number of devices that has one, each planned by itself."""
    plans = {}
    for count in counts or device_counts(problem.cluster):
        try:
            plans[count] = find_plan(cut_to(problem, count).model_copy(update={"objective": Objective()}), QUICK)
        except NoFeasiblePlan:
            continue
    return plans


def test_counts_grow_from_a_node_to_the_cluster() -> None:
    counts = device_counts(make_cluster(96, devices_per_node=8))
    assert counts[0] == 8
    assert counts[-1] == 96
    assert all(later > earlier for earlier, later in pairwise(counts))
    assert all(count % 8 == 0 for count in counts)


def test_a_cut_cluster_has_the_devices_that_it_says() -> None:
    problem = _problem("step_time")
    for count in device_counts(problem.cluster):
        assert cut_to(problem, count).cluster.num_devices == count


WHOLE_NODES = range(4, 33, 4)


@cache
def _fastest(counts: range | tuple[()] = ()) -> dict[int, Plan]:
    """``_by_count`` of the question that most tests ask."""
    return _by_count(_problem("step_time"), counts)


@pytest.mark.parametrize("slack", [1.0, 1.1, 1.3, 2.5, 6.0])
def test_fewest_devices_for_a_step_time(slack: float) -> None:
    plans = _fastest(WHOLE_NODES)
    target_s = slack * min(plan.step_time_s for plan in plans.values())
    fewest = min(count for count, plan in plans.items() if plan.step_time_s <= target_s)
    plan = find_plan(_problem("devices", max_step_time_s=target_s), QUICK)
    assert plan.problem.cluster.num_devices == fewest
    assert plan.step_time_s == plans[fewest].step_time_s <= target_s


def test_numbers_between_the_powers_of_two_are_looked_at() -> None:
    """Twenty devices in nodes of four: what five nodes reach and four do not."""
    batch = {"workload": Workload(global_batch_size=240, sequence_length=4096)}
    plans = _by_count(_problem("step_time").model_copy(update=batch), (16, 20))
    assert 20 not in device_counts(_problem("step_time").cluster)
    target_s = plans[20].step_time_s
    assert plans[16].step_time_s > target_s
    plan = find_plan(_problem("devices", max_step_time_s=target_s).model_copy(update=batch), QUICK)
    assert plan.problem.cluster.num_devices == 20


def test_a_number_of_devices_that_was_not_decided_in_time_is_not_passed_over() -> None:
    target_s = min(plan.step_time_s for plan in _fastest().values())
    with pytest.raises(BudgetSpent, match="was not decided in time"):
        find_plan(_problem("devices", max_step_time_s=target_s), SearchOptions(top_k=0, time_limit_s=0.0))


def test_fewest_devices_for_a_token_rate() -> None:
    plans = _fastest(WHOLE_NODES)
    rate = 0.4 * max(plan.tokens_per_s for plan in plans.values())
    fewest = min(count for count, plan in plans.items() if plan.tokens_per_s >= rate)
    plan = find_plan(_problem("devices", min_tokens_per_s=rate), QUICK)
    assert plan.problem.cluster.num_devices == fewest
    assert plan.tokens_per_s >= rate


def test_a_target_out_of_reach_names_what_can_be_reached() -> None:
    fastest_s = min(plan.step_time_s for plan in _fastest().values())
    with pytest.raises(NoFeasiblePlan) as caught:
        find_plan(_problem("devices", max_step_time_s=0.5 * fastest_s), QUICK)
    assert caught.value.binding == "step time"
    assert f"{fastest_s:.4g} s" in caught.value.relaxations[0]


def test_fewest_devices_needs_a_target() -> None:
    with pytest.raises(DocumentInvalid, match="needs a target"):
        find_plan(_problem("devices"), QUICK)


def test_cheapest_plan() -> None:
    plans = _fastest()
    cheapest = min(plans, key=lambda count: count * plans[count].step_time_s)
    plan = find_plan(_problem("cost"), QUICK)
    assert plan.problem.cluster.num_devices == cheapest
    assert plan.step_time_s == plans[cheapest].step_time_s


def test_small_counts_without_a_plan_are_passed_over() -> None:
    plans = _by_count(_problem("step_time", memory_gib=2.2))
    assert 0 < len(plans) < len(device_counts(_problem("cost").cluster))
    plan = find_plan(_problem("devices", memory_gib=2.2, max_step_time_s=1e6), QUICK)
    assert plan.problem.cluster.num_devices == min(plans)


def test_the_front_marks_what_nothing_beats() -> None:
    points = pareto_front(_problem("step_time"), QUICK, None, plan_on_all_devices)
    assert [point.num_devices for point in points] == list(_fastest())
    for point in points:
        cost = point.num_devices * point.plan.step_time_s
        beaten = any(
            other.plan.step_time_s <= point.plan.step_time_s
            and other.num_devices * other.plan.step_time_s <= cost
            and other.num_devices != point.num_devices
            for other in points
        )
        assert point.efficient == (not beaten)
