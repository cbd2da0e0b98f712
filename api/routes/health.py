"""``/livez``, ``/readyz``, ``/metrics``, ``/version``: for those who run the service."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.http.openapi import REF, TITLES
from api.service import Service, service_of
from api.telemetry.metrics import MEDIA_TYPE
from api.wire.problem_details import MEDIA_TYPE as PROBLEM
from api.wire.views import Health, Version
from planner.store.schema import HEAD_REVISION
from planner.store.signature import software_signature
from planner.version import __version__
from profiles.errors import MeshwrightError

router = APIRouter(tags=["operations"])
UNAVAILABLE = {503: {"model": Health, "description": TITLES[503]}}

UNKNOWN_HOST: dict[int | str, dict[str, Any]] = {
    421: {"description": TITLES[421], "content": {PROBLEM: {"schema": {"$ref": REF.format(model="ProblemDetails")}}}}
}
"""Probes answer under every name; this does not."""


@router.get("/livez", summary="Is the process alive?", response_model=Health)
async def livez() -> Health:
    """Answers as long as the process serves at all; says nothing about the database."""
    return Health(status="ok")


@router.get("/readyz", summary="Can the service work now?", response_model=Health, responses=UNAVAILABLE)  # type: ignore[arg-type]
async def readyz(request: Request, response: Response) -> Health:
    """Database, schema and queue; 503 while any of them is not well, or while the service drains."""
    service = service_of(request)
    checks = await to_thread.run_sync(_checks, service, limiter=service.probe_threads)
    if service.draining:
        checks["service"] = "draining"
    ok = all(value in {"ok", "none"} or value.isdigit() for value in checks.values())
    if not ok:
        response.status_code = 503
        response.headers["Retry-After"] = "5"
    return Health(status="ok" if ok else "unavailable", checks=checks)


@router.get(
    "/metrics", summary="Prometheus metrics", response_class=Response, responses={200: {"content": {MEDIA_TYPE: {}}}}
)
async def metrics(request: Request) -> Response:
    """Requests, searches, answers by source, the queue."""
    service = service_of(request)
    await to_thread.run_sync(_checks, service, limiter=service.probe_threads)
    return Response(service.metrics.page(), media_type=MEDIA_TYPE)


@router.get("/version", summary="Which software answers?", response_model=Version, responses=UNKNOWN_HOST)
async def version() -> Version:
    """Release, signature of the sources that decide plans, and schema."""
    signature = await to_thread.run_sync(software_signature)
    return Version(version=__version__, software_signature=signature, schema_revision=HEAD_REVISION)


def _checks(service: Service) -> dict[str, str]:
    """Each part in a word; what is wrong in the error's own slug, never in words that may hold an address."""
    found: dict[str, str] = {}
    try:
        found["database"] = "ok" if service.records.is_ready() else "store-outdated"
    except MeshwrightError as error:
        found["database"] = error.slug
    if service.jobs is None:
        found["queued_jobs"] = "none"
        return found
    try:
        counts = service.jobs.counts()
        service.metrics.show_queue(counts)
        found["queued_jobs"] = str(counts.queued)
    except MeshwrightError as error:
        found["queued_jobs"] = error.slug
    return found
