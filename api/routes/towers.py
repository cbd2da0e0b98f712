"""``/v1/towers-plans``: where the tower of a model stands best."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Planner
from api.errors import ServiceBusy
from api.http.departures import while_connected
from api.http.request_body import read_document
from api.planning.resolving import Resolver, checked_constraints, checked_workload
from api.routes.operations import add_operation
from api.routes.pools import SPARE
from api.service import service_of
from api.solving.task_runner import TooLong
from planner.errors import DocumentInvalid
from planner.operations.towers import TOWERS, TowersRequest, asked_towers
from planner.search.towers.problem import checked_towers_problem

router = APIRouter(tags=["plans"])


async def create_towers_plan(request: Request, caller: Planner) -> Response:
    """Searched in a process of the pool; nothing is stored."""
    service = service_of(request)
    question = await read_document(request, TowersRequest, service.settings.body_limit_bytes)
    limit_s = service.settings.synchronous_s
    asked = await to_thread.run_sync(lambda: resolved(service.resolver, question, SPARE * limit_s))
    try:
        work = service.searches.run(TOWERS.task, asked.model_dump(mode="json"), limit_s)
        content = await while_connected(request, work)
    except TooLong:
        raise ServiceBusy(
            f"the search takes longer than {limit_s:g} s", hint="pin fields, or ask for fewer devices"
        ) from None
    return Response(content, media_type="application/json")


def resolved(resolver: Resolver, question: TowersRequest, most_s: float) -> TowersRequest:
    """The question with documents for names and within the service's limits; what is wrong with it is told now."""
    cluster, most = resolver.cluster(question.cluster, question.devices), resolver.settings.most_devices
    if cluster.num_devices > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/devices", hint="ask for fewer")
    asked = question.model_copy(
        update={
            "model": resolver.model(question.model).model_dump(mode="json"),
            "cluster": cluster.model_dump(mode="json"),
            "devices": None,
            "workload": checked_workload(question.workload),
            "constraints": checked_constraints(question.constraints),
            "time_limit_s": min(question.time_limit_s or most_s, most_s),
        }
    )
    checked_towers_problem(asked_towers(asked))
    return asked


add_operation(router, TOWERS, create_towers_plan)
