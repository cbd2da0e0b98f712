"""The answer to a planning question: stored, searched, or made a job; under a client's key at most once.

200  the plan, from memory, the database, a search in flight or a search of its own
202  a job: asked for (``Prefer: respond-async``), or because the search outlasts the synchronous budget
422  no plan fits, or the question is wrong
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from anyio import to_thread
from fastapi import Response

from api.access.auth import Caller
from api.http.conditional import REVALIDATE, etag
from api.http.problem_responses import AnswerRefused
from api.jobs.board import PlanRequest
from api.planning.answers import Answer, StillSearching, make_job
from api.planning.idempotency import REPLAYED, KeyedRequest
from api.service import Service
from api.wire.jobs import JobRecord
from api.wire.problem_details import ProblemDetails
from planner.store.records import IdempotencyRecord

SOURCE = "Meshwright-Source"
POLL_AFTER_S = 2
APPLIED = {"Preference-Applied": "respond-async"}
"""RFC 7240, section 3: that a job is the answer because one was asked for."""


def wants_job(prefer: str | None) -> bool:
    """Whether the Prefer header (RFC 7240) asks for an asynchronous answer."""
    words = {word.strip().lower() for part in (prefer or "").split(",") for word in part.split(";")[:1]}
    return "respond-async" in words


@dataclass(frozen=True, slots=True)
class Asked:
    """A resolved question, who asks it, and how that is put on record before anything changes."""

    caller: Caller
    request: PlanRequest
    keyed: KeyedRequest | None
    as_job: bool
    begin: Callable[[], Awaitable[None]]


async def answer(service: Service, asked: Asked, *, join: bool) -> Response:
    """The response to a resolved question."""
    keyed = asked.keyed
    applied = APPLIED if asked.as_job else {}
    if keyed is None:
        return _response(await _outcome(service, asked), applied)
    record = await keyed.claim(join=join)
    if record is not None:
        return await replay(service, record)
    try:
        await asked.begin()
        outcome = await _outcome(service, asked)
        if isinstance(outcome, Answer):
            await keyed.answered(plan_id=outcome.plan_id)
        else:
            await keyed.answered(job_id=outcome.id)
    except AnswerRefused as error:
        if error.problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            await keyed.answered(problem=error.problem.model_dump_json())
        else:
            await keyed.failed()
        raise
    except BaseException:
        await keyed.failed()
        raise
    return _response(outcome, applied)


async def replay(service: Service, record: IdempotencyRecord) -> Response:
    """The first answer again."""
    replayed = {REPLAYED: "true"}
    if record.problem is not None:
        raise AnswerRefused(ProblemDetails.model_validate_json(record.problem))
    if record.plan_id is not None:
        return plan_response(await service.answers.stored(record.plan_id), replayed)
    job = await to_thread.run_sync(service.board().get, str(record.job_id))
    if job.status == "succeeded" and job.result_plan_id is not None:
        return plan_response(await service.answers.stored(job.result_plan_id), replayed)
    if job.status == "succeeded" and job.error is not None:
        raise AnswerRefused(job.error)
    return job_response(job, replayed)


def plan_response(answer: Answer, headers: Mapping[str, str] | None = None) -> Response:
    """200 with the plan; its own address and its tag."""
    known = {
        "Location": f"/v1/plans/{answer.plan_id}",
        "ETag": etag(answer.plan_id),
        "Cache-Control": REVALIDATE,
        SOURCE: answer.source,
    }
    return Response(answer.content, media_type="application/json", headers={**known, **(headers or {})})


def job_response(job: JobRecord, headers: Mapping[str, str] | None = None) -> Response:
    """202 with the job; where to look, and when."""
    known = {"Location": f"/v1/jobs/{job.id}", "Retry-After": str(POLL_AFTER_S)}
    content = json.dumps(job.model_dump(mode="json"))
    return Response(content, 202, {**known, **(headers or {})}, media_type="application/json")


async def _outcome(service: Service, asked: Asked) -> Answer | JobRecord:
    known = await service.answers.known(asked.request)
    if known is not None:
        return known
    await asked.begin()
    if not asked.as_job:
        try:
            return await service.answers.search(asked.request)
        except StillSearching:
            pass
    key = None if asked.keyed is None else asked.keyed.key
    job = await make_job(service.board(), asked.request, key, asked.caller.owner)
    service.metrics.count_answer("job")
    return job


def _response(outcome: Answer | JobRecord, applied: Mapping[str, str]) -> Response:
    return plan_response(outcome) if isinstance(outcome, Answer) else job_response(outcome, applied)
