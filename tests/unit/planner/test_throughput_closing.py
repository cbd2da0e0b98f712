"""The time that a curve has left closes the widest gaps, and a row that is slower than fewer devices says why."""

from __future__ import annotations

import pytest

from planner.answers.throughput.closing import shares_s, with_reasons, worth_closing
from planner.answers.throughput.curve import ThroughputPoint, throughput_curve, untargeted
from planner.answers.throughput.quick_plan import closer_plan, quick_plan
from planner.question.problem import Constraints, Objective, Problem, Workload
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model


def point(devices: int, step_time_s: float | None, bound_s: float | None = None) -> ThroughputPoint:
    if step_time_s is None:
        return ThroughputPoint(name=f"{devices}", num_devices=devices, fits=False)
    bound_s = step_time_s if bound_s is None else bound_s
    return ThroughputPoint(
        name=f"{devices}",
        num_devices=devices,
        fits=True,
        step_time_s=step_time_s,
        lower_bound_s=bound_s,
        gap=1 - bound_s / step_time_s,
    )


def problem(devices: int) -> Problem:
    return Problem(
        model=make_model(4),
        cluster=load_cluster("dgx-a100-80g", devices),
        workload=Workload(global_batch_size=48, sequence_length=2048),
        constraints=Constraints(backends=("native",)),
    )


def test_what_is_slower_than_fewer_devices_comes_first_and_then_the_widest_gap() -> None:
    points = [point(8, 4.0, 3.9), point(16, None), point(32, 2.0, 1.0), point(64, 2.5, 2.0), point(128, 0.5, 0.499)]
    assert worth_closing(points, range(5), set()) == [3, 2, 0]
    assert worth_closing(points, range(5), {2}) == [3, 0]
    # Pools of other devices are no parts of one cluster: nobody expects the larger one to be faster.
    assert worth_closing(points, (), set()) == [2, 3, 0]


def test_shares_are_fair_and_use_every_process() -> None:
    assert shares_s(4, 8.0) == 2.0
    assert shares_s(4, 8.0, beside=2) == 4.0
    assert shares_s(1, 8.0, beside=2) == 8.0


def test_a_row_says_why_it_is_slower_than_fewer_devices() -> None:
    rows = with_reasons([point(8, 4.0), point(16, 5.0, 4.5), point(32, 6.0, 3.0), point(64, 3.0)], range(4))
    assert rows[0].slower is None
    assert rows[3].slower is None
    assert "no plan that uses all 16 devices is as fast as that of 8 devices" in (rows[1].slower or "")
    assert "slower than 8 devices; a faster plan is not ruled out" in (rows[2].slower or "")


def test_more_time_closes_the_gap() -> None:
    quick = quick_plan(problem(24), 30)
    closer, more = closer_plan(quick, 30)
    assert not more
    assert closer.status == "optimal"
    assert closer.gap == 0.0
    assert (quick.lower_bound_s or 0.0) < closer.step_time_s <= quick.step_time_s
    # Told to stop at once; a limit of time may suffice on a fast machine.
    none, more = closer_plan(quick, 30, stop=lambda: True)
    assert more
    assert none.step_time_s == quick.step_time_s
    assert (none.lower_bound_s or 0.0) >= (quick.lower_bound_s or 0.0)


def test_a_curve_closes_its_gaps_and_keeps_what_it_says() -> None:
    kept: list[str] = []
    curve = throughput_curve(problem(24), (8, 24), budget_s=60, keep=lambda plan: kept.append(plan.plan_id))
    assert [each.plan_id for each in curve.points] == kept
    assert all(each.gap is not None and each.gap <= 0.05 for each in curve.points)


@pytest.mark.parametrize("objective", [Objective(minimize="cost", price_per_device_hour=3.0), Objective()])
def test_every_objective_asks_the_same_of_one_number_of_devices(objective: Objective) -> None:
    asked = problem(8).model_copy(update={"objective": objective})
    assert untargeted(asked).problem_id == problem(8).problem_id
