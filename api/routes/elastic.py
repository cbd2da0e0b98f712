"""``/v1/throughput`` and ``/v1/plans/{plan}:replan``: what an elastic scheduler asks."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from http import HTTPStatus

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Caller, Planner
from api.answering.plan_response import Asked, answer, wants_job
from api.answering.throughput import throughput
from api.errors import ServiceBusy
from api.http.departures import while_connected
from api.http.problem_responses import AnswerRefused
from api.http.request_body import read_document
from api.jobs.board import PlanRequest
from api.planning.idempotency import KeyedRequest, checked_key
from api.routes.operations import add_operation
from api.routes.plans import EXAMPLE, HEADER_SPACE, PLANNED, IdempotencyKey, PlanReference, Prefer
from api.service import Service, service_of
from api.solving.task_runner import TooLong
from api.wire.questions import ThroughputQuestion
from planner.answers.replan.lost import allocations
from planner.answers.replan.replan import fastest_problem
from planner.answers.throughput.curve import Throughput
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.operations.replan import REPLAN, ReplanQuestion
from planner.operations.throughput import THROUGHPUT
from planner.plan.plan import Plan
from planner.store.records import PlanText
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
    return await while_connected(request, throughput(service, question))


async def replan_plan(
    request: Request,
    plan: PlanReference,
    caller: Planner,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """The fastest plan is an answer like every other: stored, searched now, or a job; the rest needs no search."""
    service, key = service_of(request), checked_key(idempotency_key)
    question = await read_document(request, ReplanQuestion, service.settings.body_limit_bytes)
    text = await to_thread.run_sync(service.store.plan_text, plan)
    begin = partial(service.audit.begin, request, caller)
    searched = await to_thread.run_sync(_searched, text, question, service.settings.most_devices)
    known = list[str]()
    if searched is not None:
        keyed = None if key is None else _keyed(service, caller, key, text.plan_id, question)
        asked = Asked(caller, searched, keyed, wants_job(prefer), begin)
        try:
            found = await answer(service, asked, join=False)
        except AnswerRefused as error:
            # The old layout may still run where no plan uses every device.
            if error.problem.slug != NoFeasiblePlan.slug:
                raise
        else:
            if found.status_code == HTTPStatus.ACCEPTED:
                return found
            plan_id = found.headers["location"].rpartition("/")[2]
            known.append((await to_thread.run_sync(service.store.plan_text, plan_id)).body)
    await begin()
    payload = {"asked": question.model_dump(mode="json"), "plan": text.body, "known": known}
    limit_s = service.settings.synchronous_s
    try:
        content = await service.searches.run(REPLAN.task, payload, limit_s)
    except TooLong:
        raise ServiceBusy(f"the answer takes longer than {limit_s:g} s", hint="ask again") from None
    new = Plan.model_validate_json(canonical_json(json.loads(content)["plan"]))
    await to_thread.run_sync(service.store.save_plan, new)
    return Response(content, media_type="application/json")


def _searched(text: PlanText, question: ReplanQuestion, most: int) -> PlanRequest | None:
    """What has to be searched; None where nothing has.  Raises DocumentInvalid."""
    plan = Plan.model_validate_json(text.body)
    left = allocations(plan.problem.cluster, question.lost)
    if left[0].cluster.num_devices > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/devices")
    if question.prefer_layout == "keep":
        return None
    return PlanRequest(problem=fastest_problem(plan, left[0]), top_k=question.top_k)


def _keyed(service: Service, caller: Caller, key: str, plan_id: str, question: ReplanQuestion) -> KeyedRequest:
    content = canonical_json({"replan": plan_id, **question.model_dump(mode="json")})
    sha = hashlib.sha256(content.encode()).hexdigest()
    return KeyedRequest(service.records, service.releases, caller.owner, HEADER_SPACE + key, sha)


add_operation(router, THROUGHPUT, create_throughput, reads_body=ThroughputQuestion, example=EXAMPLE_CURVE)
add_operation(router, REPLAN, replan_plan, responses=PLANNED)
