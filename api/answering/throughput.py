"""Throughput of a job on each of several device counts or pools: one row each, within one time budget."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

from anyio import to_thread

from api.errors import RequestRefused, ServiceBusy
from api.http.asking import ASKING
from api.http.problem_responses import AnswerRefused
from api.service import Service
from api.solving.task_runner import TooLong
from api.wire.questions import ClusterPart, Question, ThroughputQuestion
from planner.answers.throughput.closing import LEAST_S, shares_s, with_reasons, worth_closing
from planner.answers.throughput.curve import UNDECIDED, Throughput, ThroughputPoint, measured_point, untargeted
from planner.errors import MeshwrightError
from planner.plan.plan import Plan
from planner.question.problem import Problem


@dataclass(slots=True)
class _Row:
    """One allocation that was asked about, and what is known of it so far."""

    name: str
    cluster: ClusterPart
    devices: int
    problem: Problem | None = None
    plan: Plan | None = None
    is_new: bool = False
    why_not: ThroughputPoint | None = None

    def point(self, price_per_device_hour: float | None) -> ThroughputPoint:
        if self.problem is None or self.plan is None:
            return self.why_not or ThroughputPoint(name=self.name, num_devices=self.devices, fits=None)
        return measured_point(self.name, self.problem, self.plan, price_per_device_hour)


async def throughput(service: Service, question: ThroughputQuestion) -> Throughput:
    """The curve.  Its budget begins with its turn: curves that stand side by side would spend each other's time.

    Raises RequestRefused for a question without rows, or with too many, ServiceBusy where its turn does not come.
    """
    rows = _rows(question, service.settings.most_counts)
    wait_s, caller = service.settings.quick_s, ASKING.get()
    try:
        async with asyncio.timeout(wait_s):
            await service.curve_turns.take(caller)
    except TimeoutError:
        raise ServiceBusy(
            f"other curves took {wait_s:g} s", hint="ask again, or with a smaller budget_s", retry_after_s=5
        ) from None
    try:
        return await _computed(service, question, rows)
    finally:
        service.curve_turns.give_back(caller)


async def _computed(service: Service, question: ThroughputQuestion, rows: list[_Row]) -> Throughput:
    end_s = time.monotonic() + question.budget_s
    # Large allocations first: they fit, and are quick; a small one may need all the time that is left.
    order = sorted(rows, key=lambda row: -row.devices)
    await asyncio.gather(*(_ask(service, question, row, end_s) for row in order))
    parts = range(len(question.pools), len(rows))
    await _close(service, question, rows, parts, end_s)
    for row in rows:
        if row.plan is not None and row.is_new:
            # So that its id can be asked for.
            await to_thread.run_sync(service.store.save_plan, row.plan)
    points = with_reasons([row.point(question.price_per_device_hour) for row in rows], parts)
    return Throughput(points=points, undecided=sum(point.fits is None for point in points))


def _rows(question: ThroughputQuestion, most: int) -> list[_Row]:
    rows = [_Row(pool.name, pool.cluster, pool.devices) for pool in question.pools]
    if question.device_counts:
        if question.cluster is None:
            raise RequestRefused("on which cluster?", where="/cluster", hint="device_counts need the cluster they cut")
        rows += [_Row(f"{count}", question.cluster, count) for count in question.device_counts]
    if not 1 <= len(rows) <= most:
        raise RequestRefused(
            f"{len(rows)} allocations", where="/device_counts", hint=f"ask for 1 to {most} device counts or pools"
        )
    return rows


async def _ask(service: Service, question: ThroughputQuestion, row: _Row, end_s: float) -> None:
    """Give the row a proved plan that is stored, or a quick one, or the reason why it has none."""
    fits, reason = None, ""
    try:
        row.problem = await to_thread.run_sync(_problem, service, question, row)
        await _plan(service, question, row, untargeted(row.problem), end_s)
        return
    except (TooLong, ServiceBusy):
        reason = UNDECIDED
    except AnswerRefused as error:
        fits, reason = False if error.problem.slug == "no-feasible-plan" else None, error.problem.detail
    except MeshwrightError as error:
        if error.http_status >= 500:
            raise
        reason = error.what
    row.why_not = ThroughputPoint(name=row.name, num_devices=row.devices, fits=fits, reason=reason)


async def _close(service: Service, question: ThroughputQuestion, rows: list[_Row], parts: range, end_s: float) -> None:
    """Spend what is left of the time on the whole spaces of the rows with wide gaps, every process at once."""
    over = {at for at, row in enumerate(rows) if not row.is_new}
    longest_s = question.time_limit_s or question.budget_s
    while waiting := worth_closing([row.point(None) for row in rows], parts, over):
        left_s = end_s - time.monotonic()
        if left_s < LEAST_S:
            return
        share_s = min(shares_s(len(waiting), left_s, service.settings.solver_processes), longest_s)
        more = await asyncio.gather(*(_closer(service, question.seed, rows[at], share_s, end_s) for at in waiting))
        over |= {at for at, may in zip(waiting, more, strict=True) if not may or share_s >= longest_s}


async def _closer(service: Service, seed: int, row: _Row, most_s: float, end_s: float) -> bool:
    """Search the row's whole space for a while; whether more time may find more."""
    assert row.plan is not None
    left_s = end_s - time.monotonic()
    if left_s < LEAST_S:
        return False
    payload = {"plan": row.plan.model_dump_json(), "most_s": most_s, "seed": seed}
    try:
        found = json.loads(await service.searches.run("closer_plan", payload, left_s))
    except (TooLong, ServiceBusy):
        return False
    row.plan = Plan.model_validate(found["plan"])
    return bool(found["more"])


def _problem(service: Service, question: ThroughputQuestion, row: _Row) -> Problem:
    asked = Question(
        model=question.model,
        cluster=row.cluster,
        devices=row.devices,
        workload=question.workload,
        constraints=question.constraints,
        objective=question.objective,
        profile=question.profile,
        calibration=question.calibration,
    )
    return service.resolver.problem(asked)


async def _plan(service: Service, question: ThroughputQuestion, row: _Row, problem: Problem, end_s: float) -> None:
    known = await to_thread.run_sync(service.store.find_answer, problem.problem_id)
    if known is not None and known.is_final:
        row.plan = Plan.model_validate_json(known.body)
        return
    left_s = max(end_s - time.monotonic(), 0.01)
    most_s = min(question.budget_s / 2, question.time_limit_s or question.budget_s)
    payload = {"problem": problem.model_dump(mode="json"), "most_s": most_s, "seed": question.seed}
    row.plan, row.is_new = Plan.model_validate_json(await service.searches.run("quick_plan", payload, left_s)), True
