"""What can be said about a plan: computed once in a process of the pool, then remembered.  Plans never change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from api.errors import ServiceBusy
from api.http.conditional import FOR_EVER, REVALIDATE, content_tag, etag, not_modified
from api.http.packing import large_response
from api.service import Service
from api.solving.task_runner import TooLong
from planner.store.records import PlanText
from profiles.document import canonical_json

FULL_ID = 64


async def sent_view(request: Request, plan: str, content: bytes, *, vary: bool = False) -> Response:
    """A view with its tag; only what was asked by a plan's full id may be cached for ever."""
    caching, version = FOR_EVER if len(plan) == FULL_ID else REVALIDATE, content_tag(content)
    headers = {"ETag": etag(version), "Cache-Control": caching, **({"Vary": "Accept"} if vary else {})}
    known = not_modified(request, version, caching)
    return known or await large_response(request, content, headers, "application/json")


async def view_of(
    service: Service, text: PlanText, task: str, parameters: Mapping[str, Any], *, searches: bool = False
) -> bytes:
    """The view of a plan: remembered, being computed, or computed now by a task of ``api.solving.tasks``."""
    wanted = canonical_json([text.plan_id, task, parameters])
    key = hashlib.sha256(wanted.encode()).hexdigest()
    known = service.views.get(key)
    if known is not None:
        return known
    limit_s = service.settings.quick_s
    # What may search waits with the searches: an estimate under somebody's hand never stands behind it.
    pool = service.searches if searches else service.quick

    async def compute() -> bytes:
        return await pool.run(task, {**parameters, "plan": text.body}, limit_s)

    try:
        content, _ = await service.view_flights.share(key, compute)
    except TooLong:
        raise ServiceBusy(f"this takes longer than {limit_s:g} s", hint="ask for less of it") from None
    service.views.keep(key, content)
    return content
