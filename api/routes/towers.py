"""``/v1/towers-plans``: where the tower of a model stands best."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response

from api.access.auth import Planner
from api.answering.at_once import SPARE, cluster_within, searched
from api.http.request_body import read_document
from api.planning.resolving import Resolver, checked_constraints, checked_workload
from api.routes.operations import add_operation
from api.service import service_of
from planner.operations.towers import TOWERS, TowersRequest, asked_towers
from planner.search.towers.problem import checked_towers_problem

router = APIRouter(tags=["plans"])


async def create_towers_plan(request: Request, caller: Planner) -> Response:
    """Searched in a process of the pool; nothing is stored."""
    service = service_of(request)
    question = await read_document(request, TowersRequest, service.settings.body_limit_bytes)
    most_s = SPARE * service.settings.synchronous_s
    asked = partial(resolved, service.resolver, question, most_s)
    content = await searched(request, TOWERS, asked, "pin fields, or ask for fewer devices")
    return Response(content, media_type="application/json")


def resolved(resolver: Resolver, question: TowersRequest, most_s: float) -> TowersRequest:
    """The question with documents for names and within the service's limits; what is wrong with it is told now."""
    cluster = cluster_within(resolver, question.cluster, question.devices)
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
