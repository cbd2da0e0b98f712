"""``/v1/audit``: who changed what, and who was turned away."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request

from api.access.auth import Admin
from api.http.openapi import problems
from api.service import service_of
from api.wire.views import AuditEntry, AuditPage, AuditPhase
from planner.operations.plans import harmless
from planner.store.records import AuditRecord

router = APIRouter(prefix="/v1/audit", tags=["operations"])
LARGEST_NUMBER = 2**63 - 1


@router.get("", summary="Who changed what, or was refused, newest first", responses=problems())
async def list_audit(  # a query parameter is an argument
    request: Request,
    caller: Admin,
    principal: Annotated[str | None, Query(max_length=255, description="only of this key or subject")] = None,
    phase: Annotated[AuditPhase | None, Query(description="only events of this phase")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[int | None, Query(ge=1, le=LARGEST_NUMBER, description="`next` of the page before")] = None,
) -> AuditPage:
    """A change has two entries under one request id: begun, written before anything is changed, and ended.

    Entries never change.  They go when they are older than the operator's retention.
    """
    trail = service_of(request).audit.trail
    records = await to_thread.run_sync(
        lambda: trail.page(limit=limit + 1, before=before, principal=harmless(principal), phase=phase)
    )
    shown = records[:limit]
    return AuditPage(events=tuple(map(_entry, shown)), next=shown[-1].seq if len(records) > limit else None)


def _entry(record: AuditRecord) -> AuditEntry:
    event = record.event
    return AuditEntry.model_validate(
        {
            **{name: getattr(event, name) for name in event.__slots__},
            "seq": record.seq,
            "at": record.at,
        }
    )
