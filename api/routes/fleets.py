"""``/v1/fleets``: the nodes of pools are shared between jobs."""

from __future__ import annotations

import json
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Planner
from api.errors import ServiceBusy
from api.http.request_body import read_document
from api.planning.resolving import Resolver, checked_constraints, checked_workload
from api.routes.operations import add_operation
from api.service import Service, service_of
from api.solving.task_runner import TooLong
from planner.answers.fleet.nodes import fleet_nodes
from planner.answers.fleet.question import FleetJob, FleetPool, FleetQuestion
from planner.errors import DocumentInvalid, MeshwrightError
from planner.operations.fleet import FLEET, fleet_clusters, fleet_problems
from planner.plan.plan import Plan

router = APIRouter(tags=["elastic"])
CURVES_PART, ALLOCATION_PART = 0.6, 0.25
"""Parts of the time for an answer that its speeds and its allocation may take."""


async def create_fleet(request: Request, caller: Planner) -> Response:
    """Computed in a process of the pool, within the time for an answer; what that does not decide is told.

    The same question with this answer as `former` goes on where it ended.
    """
    service = service_of(request)
    question = await read_document(request, FleetQuestion, service.settings.body_limit_bytes)
    limit_s = service.settings.synchronous_s
    asked = await to_thread.run_sync(lambda: resolved(service.resolver, question, limit_s))
    payload = {
        "asked": asked.model_dump(mode="json"),
        "plans": await to_thread.run_sync(lambda: _running(service, asked)),
    }
    await service.audit.begin(request, caller)
    try:
        content = json.loads(await service.searches.run(FLEET.task, payload, limit_s))
    except TooLong:
        raise ServiceBusy(
            f"the answer takes longer than {limit_s:g} s",
            hint="ask about fewer jobs first, and send its answer as former",
        ) from None
    for text in content["plans"]:
        plan = Plan.model_validate_json(text)
        await to_thread.run_sync(service.store.save_plan, plan)
    return Response(content["fleet"], media_type="application/json")


def resolved(resolver: Resolver, question: FleetQuestion, limit_s: float) -> FleetQuestion:
    """The question with documents for names and within the service's limits; what is wrong with it is told now."""
    asked = question.model_copy(
        update={
            "jobs": tuple(_job(resolver, job, f"/jobs/{at}") for at, job in enumerate(question.jobs)),
            "pools": tuple(_pool(resolver, pool, f"/pools/{at}") for at, pool in enumerate(question.pools)),
            "budget_s": min(question.budget_s, CURVES_PART * limit_s),
            "time_limit_s": min(question.time_limit_s, ALLOCATION_PART * limit_s),
        }
    )
    pools = fleet_nodes(asked, fleet_clusters(asked))
    most = resolver.settings.most_devices
    if sum(pool.num_nodes * pool.devices_per_node for pool in pools) > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/pools", hint="name fewer nodes")
    fleet_problems(asked, pools)
    return asked


def _job(resolver: Resolver, job: FleetJob, where: str) -> FleetJob:
    try:
        changed: dict[str, Any] = {
            "model": resolver.model(job.model).model_dump(mode="json"),
            "workload": checked_workload(job.workload),
            "constraints": checked_constraints(job.constraints),
        }
    except MeshwrightError as error:
        error.what, error.where = f"job {job.name}: {error.what}", f"{where}{error.where or ''}"
        raise
    return job.model_copy(update=changed)


def _pool(resolver: Resolver, pool: FleetPool, where: str) -> FleetPool:
    try:
        cluster = resolver.cluster(pool.cluster, None).model_dump(mode="json")
    except MeshwrightError as error:
        error.what, error.where = f"pool {pool.name}: {error.what}", f"{where}/cluster"
        raise
    return pool.model_copy(update={"cluster": cluster})


def _running(service: Service, asked: FleetQuestion) -> dict[str, str]:
    """The plans that jobs run, by the names that the question calls them.  Raises NotFound."""
    names = {job.current.plan for job in asked.jobs if job.current is not None and job.current.plan is not None}
    return {name: service.store.plan_text(name).body for name in sorted(names)}


add_operation(router, FLEET, create_fleet)
