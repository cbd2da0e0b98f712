"""The speed of a job on each of several numbers of devices: one row each, within one budget of time.

Rows are of the fastest plans (docs/decisions/0038): a curve compares device counts, and each count's recommended plan
is slower than its fastest by another amount.
A stored proof answers first; else a narrow search does, with the bound of the whole space (``quick_plan``).  The time
that is left then goes to the rows whose gaps are wide (``closing``), until every gap is closed or the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from planner.answers.throughput.closing import LEAST_S, shares_s, with_reasons, worth_closing
from planner.errors import BudgetSpent, DocumentInvalid, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Objective, Problem
from planner.search.device_counts import slowest_allowed_s
from profiles.document import Document
from profiles.scaling import scale_cluster
from profiles.units import HOUR_S

UNDECIDED = "not decided within the budget"


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
    slower: str | None = Field(
        default=None, description="why it is slower than fewer devices of the same cluster, where it is"
    )


class Throughput(Document):
    """The curve, in the order that was asked."""

    points: tuple[ThroughputPoint, ...]
    undecided: int = Field(description="rows with fits: null")
    prefer: Literal["fastest"] = Field(
        default="fastest",
        description="rows are fastest plans, proved or the best of a narrow search; a recommended one may be slower",
    )


def untargeted(problem: Problem) -> Problem:
    """The same without a target of time or rate: whether a plan keeps it is part of the row, and no reason for none.

    And without an objective: at one number of devices the fastest plan is the cheapest a token too.
    """
    free = problem.constraints.model_copy(update={"max_step_time_s": None, "min_tokens_per_s": None})
    return problem.model_copy(update={"constraints": free, "objective": Objective()})


def measured_point(name: str, asked: Problem, plan: Plan, price_per_device_hour: float | None) -> ThroughputPoint:
    """The row of a plan of ``untargeted(asked)``; without a price of its own the objective's, then the cluster's."""
    num_devices = asked.cluster.num_devices
    prices = price_per_device_hour, asked.objective.price_per_device_hour, asked.cluster.price_per_device_hour
    hourly = next((price for price in prices if price is not None), None)
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


@dataclass(slots=True)
class _Row:
    """One number of devices: the question on them, its plan so far, or the row that says why there is none."""

    count: int
    part: Problem | None = None
    plan: Plan | None = None
    is_new: bool = False
    why_not: ThroughputPoint | None = None

    def point(self, price_per_device_hour: float | None) -> ThroughputPoint:
        if self.part is None or self.plan is None:
            return self.why_not or ThroughputPoint(name=f"{self.count}", num_devices=self.count, fits=None)
        return measured_point(f"{self.count}", self.part, self.plan, price_per_device_hour)


def throughput_curve(
    problem: Problem,
    device_counts: Sequence[int],
    *,
    budget_s: float,
    most_s: float | None = None,
    seed: int = 0,
    price_per_device_hour: float | None = None,
    known: Callable[[Problem], Plan | None] = lambda _problem: None,
    keep: Callable[[Plan], Any] = lambda _plan: None,
) -> Throughput:
    """The curve over parts of the problem's cluster.

    ``most_s``: the most for one search of one row.  ``known``: a stored proof; ``keep`` stores a new plan.
    """
    end_s, longest_s = time.monotonic() + budget_s, float("inf") if most_s is None else most_s
    rows = [_Row(count) for count in device_counts]
    # Large allocations first: they fit, and are quick; a small one may need all the time that is left.
    for row in sorted(rows, key=lambda each: -each.count):
        _ask(row, problem, min(max(end_s - time.monotonic(), 0.01), budget_s / 2, longest_s), seed, known)
    _close(rows, end_s, longest_s, seed)
    for row in rows:
        if row.plan is not None and row.is_new:
            keep(row.plan)
    points = with_reasons([row.point(price_per_device_hour) for row in rows], range(len(rows)))
    return Throughput(points=points, undecided=sum(point.fits is None for point in points))


def _ask(row: _Row, problem: Problem, limit_s: float, seed: int, known: Callable[[Problem], Plan | None]) -> None:
    """Give the row its stored proof or a quick plan, or the reason why it has none."""
    from planner.answers.throughput.quick_plan import quick_plan

    name, fits, reason = f"{row.count}", None, ""
    try:
        row.part = problem.model_copy(update={"cluster": scale_cluster(problem.cluster, row.count)})
        row.plan = known(untargeted(row.part))
        if row.plan is None:
            row.plan, row.is_new = quick_plan(untargeted(row.part), limit_s, seed), True
        return
    except BudgetSpent:
        reason = UNDECIDED
    except NoFeasiblePlan as error:
        fits, reason = False, error.what
    except DocumentInvalid as error:
        reason = error.what
    row.why_not = ThroughputPoint(name=name, num_devices=row.count, fits=fits, reason=reason)


def _close(rows: Sequence[_Row], end_s: float, longest_s: float, seed: int) -> None:
    """Spend what is left of the time on the whole spaces of the rows with wide gaps, fair shares at a time."""
    from planner.answers.throughput.quick_plan import closer_plan

    over = {at for at, row in enumerate(rows) if not row.is_new}
    while waiting := worth_closing([row.point(None) for row in rows], range(len(rows)), over):
        for position, at in enumerate(waiting):
            left_s, plan = end_s - time.monotonic(), rows[at].plan
            if left_s < LEAST_S or plan is None:
                return
            share_s = shares_s(len(waiting) - position, left_s)
            rows[at].plan, more = closer_plan(plan, min(share_s, longest_s), seed)
            if not more or share_s >= longest_s:
                over.add(at)
