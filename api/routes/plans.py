"""``/v1/plans``: ask for a plan, read plans, list and compare them."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Path, Request, Response

from api.access.auth import Admin, Caller, Planner, Reader
from api.answering.plan_response import Asked, answer, plan_response, wants_job
from api.answering.views import FULL_ID
from api.errors import ScopeMissing
from api.http.conditional import FOR_EVER, REVALIDATE, etag, not_modified
from api.http.document_check import checked_document
from api.http.json_body import parse_json
from api.http.openapi import problems
from api.http.request_body import read_body
from api.planning.idempotency import KeyedRequest, checked_key
from api.routes.operations import add_operation, session_of
from api.service import Service, service_of
from api.wire.jobs import JobRecord
from api.wire.questions import PlanQuestion
from api.wire.views import PlanAnswer
from planner.operations.plan import PLAN
from planner.operations.plans import DELETE_PLAN, GET_PLAN, RemovedPlanView
from profiles.catalogue import builtin_clusters
from profiles.document import Document, canonical_json

router = APIRouter(tags=["plans"])

PlanReference = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="id, unique prefix (4 digits or more) or label")
]
IdempotencyKey = Annotated[
    str | None, Header(description="the same key and content again replays the first answer", max_length=200)
]
Prefer = Annotated[str | None, Header(description="respond-async: answer 202 with a job", max_length=200)]
HEADER_SPACE = "key/"
"""Keeps these keys apart from the ids of ``/v1/requests``."""
EXAMPLE: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "cluster": "dgx-h100",
    "devices": 8,
    "workload": {"global_batch_size": 64, "sequence_length": 4096},
}
PLANNED: dict[int | str, dict[str, Any]] = {
    202: {"model": JobRecord, "description": "A job: it was asked for, or the search takes longer"},
    **problems(404, 409, 504, body=True),
}
"""What else a planning question can be answered with."""


async def create_plan(
    request: Request,
    caller: Planner,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """The plan, or the job that searches it."""
    service, key, as_job = service_of(request), checked_key(idempotency_key), wants_job(prefer)
    body = await read_body(request, service.settings.body_limit_bytes)
    spelling = f"body {hashlib.sha256(body).hexdigest()}"
    if key is None and (known := service.answers.spelt(spelling)) is not None:
        return plan_response(known)
    question = checked_document(PlanQuestion, parse_json(body))
    check_priority(caller, question)
    keyed = None if key is None else keyed_request(service, caller, HEADER_SPACE + key, question)
    resolved = await to_thread.run_sync(service.resolver.plan_request, question)
    asked = Asked(caller, resolved, keyed, as_job, partial(service.audit.begin, request, caller))
    response = await answer(service, asked, join=False)
    if means_the_same_for_ever(question):
        service.answers.spell(spelling, resolved)
    return response


def check_priority(caller: Caller, question: PlanQuestion) -> None:
    """Who may not decide for others overtakes nobody.  Raises ScopeMissing."""
    if question.priority > 0 and "admin" not in caller.scopes:
        raise ScopeMissing(
            "a priority above 0 overtakes the jobs of others",
            scope="admin",
            hint="leave priority out, or ask with the scope admin",
        )


def keyed_request(service: Service, caller: Caller, key: str, question: Document) -> KeyedRequest:
    """The question under a key of its owner; its content is what was asked, not what names meant at the time."""
    sha = hashlib.sha256(canonical_json(question.model_dump(mode="json")).encode()).hexdigest()
    return KeyedRequest(service.records, service.releases, caller.owner, key, sha)


def means_the_same_for_ever(question: PlanQuestion) -> bool:
    """Whether no name of the question can come to mean something else."""
    from planner.model.builtin import builtin_models

    model, cluster = question.model, question.cluster
    fixed_model = not isinstance(model, str) or model.lower() in builtin_models()
    fixed_cluster = not isinstance(cluster, str) or cluster.lower() in builtin_clusters()
    return fixed_model and fixed_cluster and question.profile == "none"


async def get_plan(request: Request, plan: PlanReference, caller: Reader) -> Response:
    """A plan, as it is stored."""
    service = service_of(request)
    caching = FOR_EVER if len(plan) == FULL_ID else REVALIDATE
    found = await service.answers.stored(plan)
    same = not_modified(request, found.plan_id, caching)
    if same is not None:
        return same
    headers = {"ETag": etag(found.plan_id), "Cache-Control": caching, "Content-Location": f"/v1/plans/{found.plan_id}"}
    return Response(found.content, media_type="application/json", headers=headers)


async def delete_plan(request: Request, plan: PlanReference, caller: Admin) -> Response:
    """What this process remembers of it goes too."""
    service = service_of(request)
    found = await to_thread.run_sync(service.store.resolve, plan)
    await service.audit.begin(request, caller)
    removed = await to_thread.run_sync(DELETE_PLAN.work, session_of(service), DELETE_PLAN.request(plan=found))
    service.answers.forget(found)
    if service.jobs is not None:
        # A job that succeeded would answer the same question with a plan that is gone.
        await to_thread.run_sync(service.jobs.forget_problem, removed.problem_id)
    return Response(removed.model_dump_json(), media_type="application/json")


add_operation(router, PLAN, create_plan, shown=PlanAnswer, reads_body=PlanQuestion, responses=PLANNED, example=EXAMPLE)
add_operation(
    router, GET_PLAN, get_plan, shown=PlanAnswer, responses={304: {"description": "The client's copy is good"}}
)
add_operation(router, DELETE_PLAN, delete_plan, shown=RemovedPlanView)
