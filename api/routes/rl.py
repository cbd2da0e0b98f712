"""``/v1/rl-plans`` and ``/v1/rl-estimates``: who generates and who trains in a step of RL, and how long it takes."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Planner
from api.errors import ServiceBusy
from api.http.departures import while_connected
from api.http.request_body import read_document
from api.planning.resolving import Resolver
from api.routes.operations import add_operation
from api.routes.pools import SPARE
from api.service import service_of
from api.solving.task_runner import TooLong
from planner.errors import DocumentInvalid
from planner.operations.rl import RL_ESTIMATE, RL_PLAN, RlEstimateRequest, RlRequest, asked_rl

router = APIRouter(tags=["plans"])
Q = TypeVar("Q", bound=RlRequest)


async def create_rl_plan(request: Request, caller: Planner) -> Response:
    """Searched in a process of the pool; nothing is stored."""
    return await _answer(request, RlRequest, RL_PLAN.task)


async def create_rl_estimate(request: Request, caller: Planner) -> Response:
    """Played in a process of the pool."""
    return await _answer(request, RlEstimateRequest, RL_ESTIMATE.task)


async def _answer(request: Request, kind: type[Q], task: str) -> Response:
    service = service_of(request)
    question = await read_document(request, kind, service.settings.body_limit_bytes)
    limit_s = service.settings.synchronous_s
    asked = await to_thread.run_sync(partial(resolved, service.resolver, question, SPARE * limit_s))
    try:
        work = service.searches.run(task, asked.model_dump(mode="json"), limit_s)
        content = await while_connected(request, work)
    except TooLong:
        raise ServiceBusy(
            f"the search takes longer than {limit_s:g} s", hint="ask for one placement, or for fewer devices"
        ) from None
    return Response(content, media_type="application/json")


def resolved(resolver: Resolver, question: Q, most_s: float) -> Q:
    """The question with documents for names and within the service's limits; what is wrong with it is told now."""
    cluster, most = resolver.cluster(question.cluster, question.devices), resolver.settings.most_devices
    if cluster.num_devices > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/devices", hint="ask for fewer")
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
