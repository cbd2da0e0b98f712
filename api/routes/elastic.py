"""``/v1/throughput`` and ``/v1/plans/{plan}:replan``: what an elastic scheduler asks."""

from __future__ import annotations

import json

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Planner
from api.answering.throughput import throughput
from api.errors import ServiceBusy
from api.http.request_body import read_document
from api.routes.operations import add_operation
from api.routes.plans import EXAMPLE, PlanReference
from api.service import service_of
from api.solving.task_runner import TooLong
from api.wire.questions import ThroughputQuestion
from planner.answers.throughput.curve import Throughput
from planner.errors import DocumentInvalid
from planner.operations.replan import REPLAN, ReplanQuestion
from planner.operations.throughput import THROUGHPUT
from planner.plan.plan import Plan
from profiles.document import canonical_json

router = APIRouter(tags=["elastic"])
EXAMPLE_CURVE = {
    **{key: value for key, value in EXAMPLE.items() if key != "devices"},
    "device_counts": [8, 16, 32, 64],
    "price_per_device_hour": 2.5,
}


async def create_throughput(request: Request, caller: Planner) -> Throughput:
    """Each count or pool is a search of its own, beside the others."""
    service = service_of(request)
    question = await read_document(request, ThroughputQuestion, service.settings.body_limit_bytes)
    await service.audit.begin(request, caller)
    return await throughput(service, question)


async def replan_plan(request: Request, plan: PlanReference, caller: Planner) -> Response:
    """The new plan is searched in a process of the pool, and stored."""
    service = service_of(request)
    question = await read_document(request, ReplanQuestion, service.settings.body_limit_bytes)
    text = await to_thread.run_sync(service.store.plan_text, plan)
    await service.audit.begin(request, caller)
    limit_s, most = service.settings.synchronous_s, service.settings.most_devices
    if question.devices is not None and question.devices > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/devices")
    payload = {**question.model_dump(mode="json"), "plan": text.body}
    try:
        content = await service.searches.run(REPLAN.task, payload, limit_s)
    except TooLong:
        raise ServiceBusy(
            f"the search takes longer than {limit_s:g} s", hint="ask POST /v1/plans with Prefer: respond-async first"
        ) from None
    new = Plan.model_validate_json(canonical_json(json.loads(content)["plan"]))
    await to_thread.run_sync(service.store.save_plan, new)
    return Response(content, media_type="application/json")


add_operation(router, THROUGHPUT, create_throughput, reads_body=ThroughputQuestion, example=EXAMPLE_CURVE)
add_operation(router, REPLAN, replan_plan)
