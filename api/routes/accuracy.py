"""``/v1/accuracy``: how far predictions were from measured runs; reports by name."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Admin, Reader
from api.http.openapi import problems, reads
from api.http.request_body import read_document
from api.routes.named_documents import (
    SHOWN,
    STORED,
    Shelf,
    StoredName,
    expected_version,
    put_document,
    shown_document,
)
from api.service import Service, service_of
from api.wire.accuracy import AccuracyListing, AccuracySummary, AccuracyView
from planner.evidence.accuracy.report_document import PUBLISHED, AccuracyReport, published_report
from planner.evidence.accuracy.report_groups import report_groups
from profiles.validation import read_document as document_of

router = APIRouter(prefix="/v1/accuracy", tags=["accuracy"])
REPORTS = Shelf("accuracy", "/v1/accuracy", lambda: (PUBLISHED,), lambda _name: published_report())
EXAMPLE = {
    "by": "source",
    "interval_level": 0.9,
    "num_judged": 0,
    "num_fitted": 0,
    "rows": [],
    "groups": [],
    "fitted_groups": [],
    "ranking_groups": [],
    "unmapped": {},
    "headline": [],
}


@router.get("", summary="Reports on prediction errors, with figures by source, device and model", responses=problems())
async def list_reports(request: Request, caller: Reader) -> AccuracyListing:
    """The built-in one first: runs whose figures stand in papers."""
    return AccuracyListing(reports=await to_thread.run_sync(_summaries, service_of(request)))


@router.get(
    "/{name}",
    summary="One report, whole: every run, predicted and measured",
    response_model=AccuracyView,
    responses=SHOWN,
)
async def get_report(request: Request, name: StoredName, caller: Reader) -> Response:
    """Times are seconds, memory is bytes; its ETag is its id."""
    return await shown_document(request, REPORTS, name)


@router.put(
    "/{name}",
    summary="Keep a report under a name",
    response_model=AccuracyView,
    responses=STORED,
    openapi_extra=reads(AccuracyReport, EXAMPLE),
)
async def put_report(request: Request, name: StoredName, caller: Admin) -> Response:
    """What `meshwright accuracy -o json` prints.  Demands If-Match, or If-None-Match: * for a new name."""
    expected = expected_version(request, REPORTS, name)
    report = await read_document(request, AccuracyReport, service_of(request).settings.profile_limit_bytes)
    return await put_document(request, caller, REPORTS, name, report, expected)


def _summaries(service: Service) -> tuple[AccuracySummary, ...]:
    built = published_report()
    found = [_summary(PUBLISHED, 1, built.content_hash(), None, _figures(built))]
    for record in service.records.list_named("accuracy"):
        key = f"accuracy {record.sha}"
        known = service.views.get(key)
        if known is None:
            stored = service.records.named_body(record.sha)
            known = json.dumps(_figures(document_of(AccuracyReport, stored, record.name))).encode()
            service.views.keep(key, known)
        found.append(_summary(record.name, record.version, record.sha, record.created_at, json.loads(known)))
    return tuple(found)


def _figures(report: AccuracyReport) -> dict[str, Any]:
    """What a list says of a report; computed once, because a report never changes."""
    return {
        "num_rows": len(report.rows),
        "num_judged": report.num_judged,
        "num_fitted": report.num_fitted,
        "interval_level": report.interval_level,
        "groups": report_groups(report),
    }


def _summary(
    name: str, version: int, sha: str, created_at: datetime | None, figures: dict[str, Any]
) -> AccuracySummary:
    head = {"name": name, "version": version, "sha": sha, "created_at": created_at, "builtin": created_at is None}
    return AccuracySummary.model_validate({**head, **figures})
