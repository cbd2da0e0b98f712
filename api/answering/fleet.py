"""The answer to the question of a fleet: of a job that has answered it, computed now, or made a job.

200  the fleet, with its own address
202  a job: asked for (``Prefer: respond-async``), or because the time for an answer leaves something undecided that
     the question's own budget and limit may decide
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from fastapi import Response

from api.access.auth import Caller
from api.answering.plan_response import APPLIED, job_response, once
from api.errors import ServiceBusy, refused_by_checker
from api.http.conditional import FOR_EVER, etag
from api.http.problem_responses import AnswerRefused
from api.jobs.board import FleetRequest
from api.planning.answers import make_job
from api.planning.idempotency import REPLAYED, KeyedRequest
from api.service import Service
from api.solving.results import FoundFleet, read_fleet
from api.solving.task_runner import TooLong
from api.wire.jobs import JobRecord
from api.wire.problem_details import ProblemDetails
from planner.operations.fleet import FLEET
from planner.store.records import IdempotencyRecord
from solver.check import CheckFailed

CURVES_PART, ALLOCATION_PART = 0.6, 0.25
"""Parts of the time for an answer that its speeds and its allocation may take."""


@dataclass(frozen=True, slots=True)
class AskedFleet:
    """A resolved question, who asks it, and how that is put on record before anything changes."""

    caller: Caller
    request: FleetRequest
    keyed: KeyedRequest | None
    as_job: bool
    begin: Callable[[], Awaitable[None]]


async def fleet_answer(service: Service, asked: AskedFleet) -> Response:
    """The response to a resolved question; under a client's key it is answered once."""
    found = await once(asked.keyed, asked.begin, lambda: _outcome(service, asked), _named)
    if isinstance(found, IdempotencyRecord):
        return await _replayed(service, found)
    if isinstance(found, JobRecord):
        return job_response(found, APPLIED if asked.as_job else {})
    return await fleet_response(service, found)


async def fleet_response(service: Service, fleet_id: str, more: dict[str, str] | None = None) -> Response:
    """200 with a stored fleet; its own address and its tag.  Raises NotFound."""
    text = await to_thread.run_sync(service.store.fleet_text, fleet_id)
    headers = {"Location": f"/v1/fleets/{fleet_id}", "ETag": etag(fleet_id), "Cache-Control": FOR_EVER}
    return Response(text, media_type="application/json", headers=headers | (more or {}))


def _named(found: str | JobRecord) -> dict[str, Any]:
    """What is kept under a key."""
    return {"job_id": found.id} if isinstance(found, JobRecord) else {"fleet_id": found}


async def _replayed(service: Service, record: IdempotencyRecord) -> Response:
    """The first answer again."""
    replayed = {REPLAYED: "true"}
    if record.problem is not None:
        raise AnswerRefused(ProblemDetails.model_validate_json(record.problem))
    if record.fleet_id is not None:
        return await fleet_response(service, record.fleet_id, replayed)
    job = await to_thread.run_sync(service.board().get, str(record.job_id))
    if job.result_fleet_id is not None:
        return await fleet_response(service, job.result_fleet_id, replayed)
    if job.status == "succeeded" and job.error is not None:
        raise AnswerRefused(job.error)
    return job_response(job, replayed)


async def _outcome(service: Service, asked: AskedFleet) -> str | JobRecord:
    """The id of the fleet that answers, or the job that will."""
    known = None
    if service.jobs is not None:
        known = await to_thread.run_sync(service.jobs.find, asked.request, asked.caller.owner)
    if known is not None:
        if known.status == "succeeded" and known.error is not None:
            raise AnswerRefused(known.error)
        service.metrics.count_answer("database" if known.result_fleet_id else "job")
        return known.result_fleet_id or known
    await asked.begin()
    if not asked.as_job:
        found = await _now(service, asked.request)
        if found is not None:
            service.metrics.count_answer("search")
            return await to_thread.run_sync(_stored, service, found)
    key = None if asked.keyed is None else asked.keyed.key
    job = await make_job(service.board(), asked.request, key, asked.caller.owner)
    service.metrics.count_answer("job")
    return job


async def _now(service: Service, request: FleetRequest) -> FoundFleet | None:
    """The fleet within the time for an answer; None where a job of the same question may decide more.

    Raises ServiceBusy where that time is too short and this service runs no jobs.
    """
    limit_s, asked = service.settings.synchronous_s, request.asked
    capped = asked.model_copy(
        update={
            "budget_s": min(asked.budget_s, CURVES_PART * limit_s),
            "time_limit_s": min(asked.time_limit_s, ALLOCATION_PART * limit_s),
        }
    )
    payload = request.model_copy(update={"asked": capped}).model_dump(mode="json")
    try:
        content = await service.searches.run(FLEET.task, payload, limit_s)
        found = await to_thread.run_sync(read_fleet, content)
    except CheckFailed as error:
        raise refused_by_checker(error) from None
    except TooLong:
        if service.jobs is None:
            raise ServiceBusy(
                f"the answer takes longer than {limit_s:g} s",
                hint="ask about fewer jobs first, and send its answer as former",
            ) from None
        return None
    is_whole = capped == asked or found.fleet.is_decided
    return found if is_whole or service.jobs is None else None


def _stored(service: Service, found: FoundFleet) -> str:
    return found.save(service.store, 0.0).fleet_id or ""
