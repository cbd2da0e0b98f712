"""Throughput of a job on each of several device counts or pools: one row each, within one time budget."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from anyio import to_thread

from api.errors import RequestRefused, ServiceBusy
from api.http.problem_responses import AnswerRefused
from api.service import Service
from api.solving.task_runner import TooLong
from api.wire.questions import ClusterPart, Question, ThroughputQuestion
from planner.answers.throughput.curve import UNDECIDED, Throughput, ThroughputPoint, measured_point, untargeted
from planner.errors import MeshwrightError
from planner.plan.plan import Plan
from planner.question.problem import Problem


@dataclass(frozen=True, slots=True)
class _Row:
    """One allocation that was asked about."""

    name: str
    cluster: ClusterPart
    devices: int


async def throughput(service: Service, question: ThroughputQuestion) -> Throughput:
    """The curve.  Raises RequestRefused for a question without rows, or with too many."""
    rows = _rows(question, service.settings.most_counts)
    end_s = time.monotonic() + question.budget_s
    # Large allocations first: they fit, and are quick; a small one may need all the time that is left.
    order = sorted(range(len(rows)), key=lambda index: -rows[index].devices)
    answers = await asyncio.gather(*(_point(service, question, rows[index], end_s) for index in order))
    by_index = dict(zip(order, answers, strict=True))
    points = tuple(by_index[index] for index in range(len(rows)))
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


async def _point(service: Service, question: ThroughputQuestion, row: _Row, end_s: float) -> ThroughputPoint:
    try:
        problem = await to_thread.run_sync(_problem, service, question, row)
        plan = await _plan(service, untargeted(problem), question.budget_s, end_s)
    except (TooLong, ServiceBusy):
        return ThroughputPoint(name=row.name, num_devices=row.devices, fits=None, reason=UNDECIDED)
    except AnswerRefused as error:
        fits = False if error.problem.slug == "no-feasible-plan" else None
        return ThroughputPoint(name=row.name, num_devices=row.devices, fits=fits, reason=error.problem.detail)
    except MeshwrightError as error:
        if error.http_status >= 500:
            raise
        return ThroughputPoint(name=row.name, num_devices=row.devices, fits=None, reason=error.what)
    return measured_point(row.name, problem, plan, question.price_per_device_hour)


def _problem(service: Service, question: ThroughputQuestion, row: _Row) -> Problem:
    asked = Question(
        model=question.model,
        cluster=row.cluster,
        devices=row.devices,
        workload=question.workload,
        constraints=question.constraints,
        profile=question.profile,
    )
    return service.resolver.problem(asked)


async def _plan(service: Service, problem: Problem, budget_s: float, end_s: float) -> Plan:
    """A proved plan that is stored, or a quick one; that is stored too, so that its id can be asked for."""
    known = await to_thread.run_sync(service.store.find_answer, problem.problem_id)
    if known is not None and known.is_final:
        return Plan.model_validate_json(known.body)
    left_s = max(end_s - time.monotonic(), 0.01)
    payload = {"problem": problem.model_dump(mode="json"), "most_s": budget_s / 2}
    found = Plan.model_validate_json(await service.searches.run("quick_plan", payload, left_s))
    await to_thread.run_sync(service.store.save_plan, found)
    return found
