"""The speed of a job on each of several numbers of devices: one row each, within one budget of time.

Rows are of the fastest plans (docs/decisions/0038): a curve compares device counts, and each count's recommended plan
is slower than its fastest by another amount.
A stored proof answers first; else a narrow search does, with the bound of the whole space (``quick_plan``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import Field

from planner.errors import BudgetSpent, DocumentInvalid, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.device_counts import slowest_allowed_s
from profiles.document import Document
from profiles.scaling import scale_cluster

UNDECIDED = "not decided within the budget"
HOUR_S = 3600.0


class ThroughputPoint(Document):
    """One allocation."""

    name: str
    num_devices: int
    fits: bool | None = Field(description="null: not decided in time, or not a possible number of devices")
    reason: str | None = Field(default=None, description="why it does not fit, or why nobody knows")
    meets_target: bool | None = Field(default=None, description="max_step_time_s and min_tokens_per_s are kept")
    proved: bool = Field(default=False, description="no plan of the declared space is faster")
    plan_id: str | None = None
    backend: str | None = Field(default=None, description="the software that runs the plan")
    release: str | None = Field(default=None, description="its release; empty = the default one")
    step_time_s: float | None = None
    step_time_interval_s: tuple[float, float] | None = None
    lower_bound_s: float | None = None
    gap: float | None = Field(default=None, description="how much faster another plan could be, at most")
    tokens_per_s: float | None = None
    tokens_per_s_per_device: float | None = None
    model_flops_utilization: float | None = None
    peak_memory_bytes: int | None = None
    fits_probability: float | None = Field(default=None, description="chance that the fullest device holds its peak")
    cost_per_million_tokens: float | None = Field(default=None, description="null without a price")
    strategy: dict[str, Any] | None = None


class Throughput(Document):
    """The curve, in the order that was asked."""

    points: tuple[ThroughputPoint, ...]
    undecided: int = Field(description="rows with fits: null")
    prefer: Literal["fastest"] = Field(
        default="fastest",
        description="rows are fastest plans, proved or the best of a narrow search; a recommended one may be slower",
    )


def untargeted(problem: Problem) -> Problem:
    """The same without a target of time or rate: whether a plan keeps it is part of the row, and no reason for none."""
    free = problem.constraints.model_copy(update={"max_step_time_s": None, "min_tokens_per_s": None})
    return problem.model_copy(update={"constraints": free})


def measured_point(name: str, asked: Problem, plan: Plan, price_per_device_hour: float | None) -> ThroughputPoint:
    """The row of a plan of ``untargeted(asked)``; without a price of its own the cluster's counts."""
    num_devices = asked.cluster.num_devices
    hourly = price_per_device_hour if price_per_device_hour is not None else plan.problem.cluster.price_per_device_hour
    per_token = None if hourly is None else hourly * num_devices / HOUR_S / plan.tokens_per_s
    low_s, high_s = plan.step_time_interval_s
    return ThroughputPoint(
        name=name,
        num_devices=num_devices,
        fits=True,
        meets_target=plan.step_time_s <= slowest_allowed_s(asked),
        proved=plan.status == "optimal",
        plan_id=plan.plan_id,
        backend=plan.backend,
        release=plan.release,
        step_time_s=plan.step_time_s,
        step_time_interval_s=(low_s, high_s),
        lower_bound_s=plan.lower_bound_s,
        gap=plan.gap,
        tokens_per_s=plan.tokens_per_s,
        tokens_per_s_per_device=plan.tokens_per_s_per_device,
        model_flops_utilization=plan.model_flops_utilization,
        peak_memory_bytes=plan.peak_memory_bytes,
        fits_probability=plan.fits_probability,
        cost_per_million_tokens=None if per_token is None else per_token * 1e6,
        strategy=plan.strategy,
    )


def throughput_curve(
    problem: Problem,
    device_counts: Sequence[int],
    *,
    budget_s: float,
    price_per_device_hour: float | None = None,
    known: Callable[[Problem], Plan | None] = lambda _problem: None,
    keep: Callable[[Plan], Any] = lambda _plan: None,
) -> Throughput:
    """The curve over parts of the problem's cluster.  ``known``: a stored proof; ``keep`` stores a new plan."""
    from planner.answers.throughput.quick_plan import quick_plan

    end_s = time.monotonic() + budget_s
    rows: dict[int, ThroughputPoint] = {}
    # Large allocations first: they fit, and are quick; a small one may need all the time that is left.
    for index in sorted(range(len(device_counts)), key=lambda each: -device_counts[each]):
        count = device_counts[index]
        point: ThroughputPoint
        try:
            part = problem.model_copy(update={"cluster": scale_cluster(problem.cluster, count)})
            free = untargeted(part)
            plan = known(free)
            if plan is None:
                plan = quick_plan(free, min(max(end_s - time.monotonic(), 0.01), budget_s / 2))
                keep(plan)
            point = measured_point(f"{count}", part, plan, price_per_device_hour)
        except BudgetSpent:
            point = ThroughputPoint(name=f"{count}", num_devices=count, fits=None, reason=UNDECIDED)
        except NoFeasiblePlan as error:
            point = ThroughputPoint(name=f"{count}", num_devices=count, fits=False, reason=error.what)
        except DocumentInvalid as error:
            point = ThroughputPoint(name=f"{count}", num_devices=count, fits=None, reason=error.what)
        rows[index] = point
    points = tuple(rows[index] for index in range(len(device_counts)))
    return Throughput(points=points, undecided=sum(point.fits is None for point in points))
