"""``/v1/sweeps``: many questions asked as one; each cell is a job that any worker runs."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request, Response

from api.access.auth import Admin, Caller, Planner, Reader
from api.answering.plan_response import POLL_AFTER_S
from api.http.conditional import REVALIDATE, content_tag, etag, not_modified
from api.http.openapi import problems
from api.http.request_body import read_document
from api.planning.idempotency import REPLAYED, KeyedRequest, checked_key
from api.routes.operations import add_operation
from api.routes.plans import IdempotencyKey
from api.service import Service, service_of
from api.sweeps.cell_lines import first_cells
from api.sweeps.resolved import ResolvedSweep
from api.sweeps.resolving import resolved_sweep
from api.sweeps.views import summaries, whole
from api.wire.sweeps import RemovedSweep, SweepPage, SweepRequest, SweepSummary, SweepView
from planner.errors import NotFound
from planner.operations.sweep import SWEEP
from planner.store.records import SweepRecord
from planner.store.sweeps import WITHOUT_ANSWER, Asked

router = APIRouter(prefix="/v1/sweeps", tags=["sweeps"])
SweepId = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
ACCEPTED = 202
SPACE = "sweep/"


async def create_sweep(request: Request, caller: Planner, idempotency_key: IdempotencyKey = None) -> Response:
    """Where the sweep is, and how far."""
    service, key = service_of(request), checked_key(idempotency_key)
    service.board()
    asked = await read_document(request, SweepRequest, service.settings.body_limit_bytes)
    if key is None:
        return await _kept(service, request, caller, asked)
    sha = hashlib.sha256(asked.canonical_json().encode()).hexdigest()
    keyed = KeyedRequest(service.records, service.releases, caller.owner, SPACE + key, sha)
    # A twin in flight makes the same sweep: no reason to refuse it.
    known = await keyed.claim(join=True)
    if known is not None:
        # Retention may have removed the sweep before the key: then it is asked again.
        with suppress(NotFound):
            found = await to_thread.run_sync(service.store.sweeps().get, str(known.sweep_id))
            return await _response(service, found, {REPLAYED: "true"})
    try:
        response = await _kept(service, request, caller, asked)
    except BaseException:
        await keyed.failed()
        raise
    await keyed.answered(sweep_id=response.headers["location"].rpartition("/")[2])
    return response


add_operation(
    router,
    SWEEP,
    create_sweep,
    shown=SweepSummary,
    status=ACCEPTED,
    reads_body=SweepRequest,
    responses={200: {"model": SweepSummary, "description": "The same sweep was asked before, and has ended"}},
)


@router.get("", summary="List sweeps, newest first", responses=problems(404))
async def list_sweeps(
    request: Request,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$", description="`next` of the page before")] = None,
) -> SweepPage:
    """Pages are stable while sweeps arrive."""
    store = service_of(request).store.sweeps()
    records = await to_thread.run_sync(lambda: store.page(limit=limit + 1, after=after))
    shown = records[:limit]
    more = shown[-1].sweep_id if len(records) > limit else None
    return SweepPage(sweeps=await to_thread.run_sync(summaries, store, shown), next=more)


@router.get(
    "/{sweep}",
    summary="One sweep with its cells, as it stands",
    response_model=SweepView,
    responses={304: {"description": "Nothing happened since"}, **problems(404)},
)
async def get_sweep(request: Request, sweep: SweepId, caller: Reader) -> Response:
    """Poll with If-None-Match: 304 until something happens.  A cell's `plan_id` is a plan of /v1/plans."""
    store = service_of(request).store.sweeps()

    def read() -> SweepView:
        return whole(store, store.get(sweep))

    view = await to_thread.run_sync(read)
    content = json.dumps(view.model_dump(mode="json")).encode()
    version = content_tag(content)
    headers = {"ETag": etag(version), "Cache-Control": REVALIDATE}
    if view.ended_at is None:
        headers["Retry-After"] = str(POLL_AFTER_S)
    return not_modified(request, version, REVALIDATE) or Response(
        content, media_type="application/json", headers=headers
    )


@router.post("/{sweep}:cancel", summary="End a sweep; its answers are kept", responses=problems(404))
async def cancel_sweep(request: Request, sweep: SweepId, caller: Planner) -> SweepSummary:
    """Takes effect within seconds; harmless for a sweep that has ended.

    Jobs that were there before, or that another sweep waits for, go on.
    """
    service = service_of(request)
    store = service.store.sweeps()
    await to_thread.run_sync(store.get, sweep)
    await service.audit.begin(request, caller)
    record = await to_thread.run_sync(store.cancel, sweep)
    service.wake_sweeps()
    (summary,) = await to_thread.run_sync(summaries, store, [record])
    return summary


@router.delete("/{sweep}", summary="Remove a sweep that has ended; its plans stay", responses=problems(404, 409))
async def delete_sweep(request: Request, sweep: SweepId, caller: Admin) -> RemovedSweep:
    """409 while it runs: cancel it first."""
    service = service_of(request)
    store = service.store.sweeps()
    await to_thread.run_sync(store.get, sweep)
    await service.audit.begin(request, caller)
    return RemovedSweep(sweep_id=sweep, cells=await to_thread.run_sync(store.remove, sweep))


async def _kept(service: Service, request: Request, caller: Caller, asked: SweepRequest) -> Response:
    """Store the sweep, unless it is there and needs nothing."""
    resolved = await to_thread.run_sync(resolved_sweep, service.resolver, asked)
    sweep_id = await to_thread.run_sync(lambda: resolved.sweep_id)
    record = await to_thread.run_sync(_untouched, service, sweep_id)
    if record is None:
        await service.audit.begin(request, caller)
        record = await to_thread.run_sync(_keep, service, resolved, sweep_id, caller.owner)
        service.wake_sweeps()
    return await _response(service, record)


def _keep(service: Service, resolved: ResolvedSweep, sweep_id: str, owner: str) -> SweepRecord:
    asked = Asked(resolved.question, resolved)
    return service.store.sweeps().keep(sweep_id, asked, owner, first_cells(resolved))


def _untouched(service: Service, sweep_id: str) -> SweepRecord | None:
    """The sweep, if it is there and asking again changes nothing."""
    store = service.store.sweeps()
    try:
        record = store.get(sweep_id)
    except NotFound:
        return None
    unanswered = set(store.counts([sweep_id]).get(sweep_id, {})) & set(WITHOUT_ANSWER)
    return None if unanswered or record.cancelled_at is not None else record


async def _response(service: Service, record: SweepRecord, headers: dict[str, str] | None = None) -> Response:
    """202 with where to look while it runs, else 200."""
    (summary,) = await to_thread.run_sync(summaries, service.store.sweeps(), [record])
    known = {"Location": f"/v1/sweeps/{record.sweep_id}", **(headers or {})}
    if record.ended_at is None:
        known["Retry-After"] = str(POLL_AFTER_S)
    content = json.dumps(summary.model_dump(mode="json"))
    status = ACCEPTED if record.ended_at is None else 200
    return Response(content, status, known, media_type="application/json")
