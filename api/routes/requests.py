"""``/v1/requests/{id}``: planning under a scheduler's own id: send it as often as you like, it happens once."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Path, Request, Response

from api.access.auth import Planner, Reader
from api.answering.plan_response import Asked, answer, wants_job
from api.http.document_check import checked_document
from api.http.json_body import parse_json
from api.http.openapi import problems, reads
from api.http.request_body import read_body
from api.routes.plans import EXAMPLE, PLANNED, Prefer, check_priority, keyed_request
from api.service import Service, service_of
from api.wire.problem_details import ProblemDetails
from api.wire.questions import PlanQuestion
from api.wire.views import PlanAnswer, RequestView
from planner.errors import NotFound
from planner.store.records import IdempotencyRecord

router = APIRouter(prefix="/v1/requests", tags=["requests"])
RequestId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$", description="the scheduler's own id")]
SPACE = "request/"


@router.put(
    "/{request_id}",
    summary="Plan under the scheduler's own id",
    response_model=PlanAnswer,
    responses=PLANNED,
    openapi_extra=reads(PlanQuestion, EXAMPLE),
)
async def put_request(
    request: Request,
    request_id: RequestId,
    caller: Planner,
    prefer: Prefer = None,
) -> Response:
    """The first time it plans, every further time it repeats that answer; other content under one id is refused."""
    service = service_of(request)
    body = await read_body(request, service.settings.body_limit_bytes)
    question = checked_document(PlanQuestion, parse_json(body))
    check_priority(caller, question)
    keyed = keyed_request(service, caller, SPACE + request_id, question)
    resolved = await to_thread.run_sync(service.resolver.plan_request, question)
    asked = Asked(caller, resolved, keyed, wants_job(prefer), partial(service.audit.begin, request, caller))
    return await answer(service, asked, join=True)


@router.get("/{request_id}", summary="What became of a request", responses=problems(404))
async def get_request(request: Request, request_id: RequestId, caller: Reader) -> RequestView:
    """Its plan, its job, or why there is no plan."""
    service = service_of(request)
    record = await to_thread.run_sync(service.records.keyed_request, caller.owner, SPACE + request_id)
    if record is None:
        raise NotFound("there is no such request", where="request_id", hint="PUT it first, with the same key")
    return await to_thread.run_sync(_view, service, request_id, record)


def _view(service: Service, request_id: str, record: IdempotencyRecord) -> RequestView:
    if record.job_id is not None:
        job = service.board().get(record.job_id)
        return RequestView(
            request_id=request_id,
            state="answered" if job.status == "succeeded" else job.status,
            plan_id=job.result_plan_id,
            job_id=job.id,
            problem=job.error,
            created_at=record.created_at,
        )
    problem = None if record.problem is None else ProblemDetails.model_validate_json(record.problem)
    return RequestView(
        request_id=request_id,
        state="answered" if record.answered else "answering",
        plan_id=record.plan_id,
        problem=problem,
        created_at=record.created_at,
    )
