"""``/v1/serving/...``: the best deployment of a serving engine for a traffic, and what a given one gives."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from api.access.auth import Planner, Reader
from api.answering.at_once import SPARE, cluster_within, searched
from api.http.request_body import read_document
from api.planning.resolving import Resolver
from api.routes.operations import add_operation
from api.service import service_of
from planner.operations.operation import Operation
from planner.operations.serving import (
    SERVING_ESTIMATE,
    SERVING_PLAN,
    USUAL_LARGE_S,
    ServingEstimateRequest,
    ServingPlanRequest,
    ServingQuestion,
    published_checkpoint,
    serving_problem,
)

router = APIRouter(tags=["serving"])
Q = TypeVar("Q", bound=ServingQuestion)
SETTLING = 0.4
"""Part of the time for an answer that its search may take; predictions of whole deployments take of the rest."""


async def create_serving_plan(request: Request, caller: Planner) -> Response:
    """Searched in a process of the pool; nothing is stored."""
    service = service_of(request)
    question = await read_document(request, ServingPlanRequest, service.settings.body_limit_bytes)
    most_s = SETTLING * SPARE * service.settings.synchronous_s
    question = question.model_copy(update={"time_limit_s": min(question.time_limit_s or USUAL_LARGE_S, most_s)})
    return await _answered(request, SERVING_PLAN, question)


async def create_serving_estimate(request: Request, caller: Reader) -> Response:
    """Predicted in a process of the pool."""
    limit = service_of(request).settings.body_limit_bytes
    return await _answered(request, SERVING_ESTIMATE, await read_document(request, ServingEstimateRequest, limit))


async def _answered(request: Request, operation: Operation[Q, Any], question: Q) -> Response:
    asked = partial(resolved, service_of(request).resolver, question)
    hint = "pin fields, name an engine, or ask for fewer devices"
    return Response(await searched(request, operation, asked, hint), media_type="application/json")


def resolved(resolver: Resolver, question: Q) -> Q:
    """The question with documents for names and within the service's limits; what is wrong with it is told now."""
    cluster = cluster_within(resolver, question.cluster, question.devices)
    weights, experts = question.checkpoint, question.expert_checkpoint
    if weights is None:
        weights, experts = published_checkpoint(question.model)
    asked = question.model_copy(
        update={
            "model": resolver.model(question.model).model_dump(mode="json"),
            "cluster": cluster.model_dump(mode="json"),
            "devices": None,
            "checkpoint": weights,
            "expert_checkpoint": experts,
        }
    )
    serving_problem(asked)
    return asked


add_operation(router, SERVING_PLAN, create_serving_plan)
add_operation(router, SERVING_ESTIMATE, create_serving_estimate)
