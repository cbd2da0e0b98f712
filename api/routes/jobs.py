"""``/v1/jobs``: long searches: look, list, watch, cancel.  They begin with ``POST /v1/plans``."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.access.auth import Planner, Reader
from api.http.conditional import REVALIDATE, content_tag, etag, not_modified
from api.http.openapi import problems
from api.jobs.board import JobBoard
from api.service import Service, service_of
from api.wire.jobs import ENDED, JobEvent, JobRecord, JobStatus
from api.wire.views import JobPage

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
JobId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
POLL_S = 0.5
HEARTBEAT_S = 15.0
"""Silence in which proxies keep a connection; a comment line breaks it."""
LONGEST_ID = 18


@router.get("", summary="List jobs, newest first", response_model=JobPage, responses=problems(404))
async def list_jobs(
    request: Request,
    caller: Reader,
    status: Annotated[JobStatus | None, Query(description="only jobs in this state")] = None,
    mine: Annotated[bool, Query(description="only jobs of this key")] = False,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="`next` of a page")] = None,
) -> JobPage:
    """Pages are stable while jobs arrive."""
    board, owner = service_of(request).board(), caller.owner if mine else None
    jobs = await to_thread.run_sync(lambda: board.list_jobs(owner=owner, status=status, before=before, limit=limit + 1))
    shown = jobs[:limit]
    return JobPage(jobs=shown, next=shown[-1].id if len(jobs) > limit else None)


@router.get(
    "/{job}",
    summary="One job as it stands",
    response_model=JobRecord,
    responses={304: {"description": "Nothing happened since"}, **problems(404)},
)
async def get_job(request: Request, job: JobId, caller: Reader) -> Response:
    """Poll with If-None-Match: 304 until something happens.  `result_plan_id` names the plan of a good end."""
    board = service_of(request).board()
    record = await to_thread.run_sync(board.get, job)
    content = json.dumps(record.model_dump(mode="json")).encode()
    version = content_tag(content)
    headers = {"ETag": etag(version), "Cache-Control": REVALIDATE}
    if record.status not in ENDED:
        headers["Retry-After"] = "2"
    return not_modified(request, version, REVALIDATE) or Response(
        content, media_type="application/json", headers=headers
    )


@router.post("/{job}:cancel", summary="Wait no longer for a job; the last who does ends it", responses=problems(404))
async def cancel_job(request: Request, job: JobId, caller: Planner) -> JobRecord:
    """Equal questions share a job: it goes on while another caller waits (`num_waiting`), and keeps its best plan.

    A job of others is ended by a key with the scope `admin` only, and then for everybody.  Takes effect within seconds;
    harmless for a job that has ended.
    """
    service = service_of(request)
    board = service.board()
    mine = await to_thread.run_sync(board.is_waiting, job, caller.owner)
    if not mine:
        caller.demand("admin")
    await service.audit.begin(request, caller)
    return await to_thread.run_sync(board.cancel, job, caller.owner if mine else None)


@router.get(
    "/{job}/events",
    summary="Watch a job: server-sent events with progress, resumable",
    response_class=Response,
    responses={
        200: {
            "description": "`id` is the event's number, `data` a JobEvent; the stream ends with the job",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **problems(404),
    },
)
async def watch_job(
    request: Request,
    job: JobId,
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=64, description="resume after this event")] = None,
) -> StreamingResponse:
    """Repeats no event and misses none: numbers have no holes, and `Last-Event-ID` says where to go on."""
    service = service_of(request)
    board = service.board()
    await to_thread.run_sync(board.get, job)
    service.streams.check(caller.owner)
    said = last_event_id or ""
    after = int(said) if said.isascii() and said.isdigit() and len(said) <= LONGEST_ID else 0
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    response = _Stream(_events(service, board, job, after), media_type="text/event-stream", headers=headers)
    response.opened = service.streams.opened(caller.owner)
    return response


class _Stream(StreamingResponse):
    """A stream that is counted while it is being sent."""

    opened: AbstractContextManager[None] = nullcontext()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self.opened:
            await super().__call__(scope, receive, send)


async def _events(service: Service, board: JobBoard, job_id: str, after: int) -> AsyncIterator[bytes]:
    spoke_s, threads = time.monotonic(), service.stream_threads
    while True:
        ended = (await to_thread.run_sync(board.get, job_id, limiter=threads)).status in ENDED
        # Read after the status: what happened before the end is in here.
        events = await to_thread.run_sync(board.events, job_id, after, limiter=threads)
        for event in events:
            after, spoke_s = event.seq, time.monotonic()
            yield _sse(event)
        if (ended and not events) or service.draining:
            return
        if time.monotonic() - spoke_s > HEARTBEAT_S:
            spoke_s = time.monotonic()
            yield b": still here\n\n"
        if not ended:
            await asyncio.sleep(POLL_S)


def _sse(event: JobEvent) -> bytes:
    data = json.dumps(event.model_dump(mode="json"), separators=(",", ":"))
    return f"id: {event.seq}\nevent: {event.status}\ndata: {data}\n\n".encode()
