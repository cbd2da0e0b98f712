"""``/v1/pools-plans``: one pipeline over several kinds of devices."""

from __future__ import annotations

import json
from functools import partial

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Planner
from api.answering.at_once import SPARE, searched
from api.http.request_body import read_document
from api.planning.resolving import Resolver, checked_constraints, checked_workload
from api.routes.operations import add_operation
from api.service import service_of
from planner.errors import DocumentInvalid
from planner.operations.pools import POOLS, PoolPart, PoolsRequest, asked_pools, runnable_plan
from planner.plan.plan import Plan
from planner.search.pools.plan import PoolsPlan

router = APIRouter(tags=["plans"])


async def create_pools_plan(request: Request, caller: Planner) -> Response:
    """Searched in a process of the pool; a plan that a back-end runs is stored."""
    service = service_of(request)
    question = await read_document(request, PoolsRequest, service.settings.body_limit_bytes)
    most_s = SPARE * service.settings.synchronous_s
    asked = partial(resolved, service.resolver, question, most_s)
    content = await searched(request, POOLS, asked, "pin fields, or ask for fewer devices")
    runnable = await to_thread.run_sync(lambda: of_its_back_end(content))
    if runnable is not None:
        await service.audit.begin(request, caller)
        await to_thread.run_sync(lambda: service.store.save_plan(runnable))
    return Response(content, media_type="application/json")


def of_its_back_end(content: bytes) -> Plan | None:
    """The plan of an answer as its back-end runs it; None of one for study."""
    return runnable_plan(PoolsPlan.model_validate(json.loads(content)["plan"]))


def resolved(resolver: Resolver, question: PoolsRequest, most_s: float) -> PoolsRequest:
    """The question with documents for names and within the service's limits; what is wrong with it is told now."""
    clusters = [resolver.cluster(part.cluster, part.devices) for part in question.pools]
    most = resolver.settings.most_devices
    if sum(cluster.num_devices for cluster in clusters) > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/pools", hint="ask for fewer")
    asked = question.model_copy(
        update={
            "model": resolver.model(question.model).model_dump(mode="json"),
            "pools": tuple(PoolPart(cluster=cluster.model_dump(mode="json")) for cluster in clusters),
            "workload": checked_workload(question.workload),
            "constraints": checked_constraints(question.constraints),
            "time_limit_s": min(question.time_limit_s or most_s, most_s),
        }
    )
    asked_pools(asked)
    return asked


add_operation(router, POOLS, create_pools_plan)
