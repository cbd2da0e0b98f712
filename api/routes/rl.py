"""``/v1/rl-plans`` and ``/v1/rl-estimates``: who generates and who trains in a step of RL, and how long it takes."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from api.access.auth import Planner
from api.answering.at_once import SPARE, cluster_within, searched
from api.http.request_body import read_document
from api.planning.resolving import Resolver
from api.routes.operations import add_operation
from api.service import service_of
from planner.operations.operation import Operation
from planner.operations.rl import RL_ESTIMATE, RL_PLAN, RlEstimateRequest, RlRequest, asked_rl

router = APIRouter(tags=["plans"])
Q = TypeVar("Q", bound=RlRequest)


async def create_rl_plan(request: Request, caller: Planner) -> Response:
    """Searched in a process of the pool; nothing is stored."""
    return await _answer(request, RlRequest, RL_PLAN)


async def create_rl_estimate(request: Request, caller: Planner) -> Response:
    """Played in a process of the pool."""
    return await _answer(request, RlEstimateRequest, RL_ESTIMATE)


async def _answer(request: Request, kind: type[Q], operation: Operation[Any, Any]) -> Response:
    service = service_of(request)
    question = await read_document(request, kind, service.settings.body_limit_bytes)
    most_s = SPARE * service.settings.synchronous_s
    asked = partial(resolved, service.resolver, question, most_s)
    content = await searched(request, operation, asked, "ask for one placement, or for fewer devices")
    return Response(content, media_type="application/json")


def resolved(resolver: Resolver, question: Q, most_s: float) -> Q:
    """The question with documents for names and within the service's limits; what is wrong with it is told now."""
    cluster = cluster_within(resolver, question.cluster, question.devices)
    critic = None if question.critic is None else resolver.model(question.critic).model_dump(mode="json")
    asked = question.model_copy(
        update={
            "model": resolver.model(question.model).model_dump(mode="json"),
            "critic": critic,
            "cluster": cluster.model_dump(mode="json"),
            "devices": None,
            "time_limit_s": min(question.time_limit_s or most_s, most_s),
        }
    )
    asked_rl(asked)
    return asked


add_operation(router, RL_PLAN, create_rl_plan)
add_operation(router, RL_ESTIMATE, create_rl_estimate)
