"""Requests of an agent to a service, in this process or elsewhere; the same keys, limits and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from api.agents.tools import ToolCall
from api.wire.jobs import ENDED

if TYPE_CHECKING:
    from fastapi import FastAPI

HERE = "http://localhost"
"""How a service in this process is asked; it listens nowhere."""
PLANS = "/v1/plans"
LOOK_S = 1.0
"""Between two looks at a job."""
Hear = Callable[[float, float | None, str], Awaitable[None]]
"""Hears how far a job is: done, of how many (None = unknown), in words."""


class Door:
    """A service that answers."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def document(self) -> dict[str, Any]:
        """The service's OpenAPI document."""
        answer = await self._http.get("/openapi.json")
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    async def send(self, call: ToolCall, headers: Mapping[str, str], hear: Hear) -> httpx.Response:
        """The answer; of a search that became a job, what it was for or why it found none.  ``headers``: the key."""
        sent = dict(headers)
        answer = await self._http.request(
            call.method, call.path, params=_listed(call.query), json=call.body, headers=sent
        )
        if answer.status_code != httpx.codes.ACCEPTED:
            return answer
        job = answer.json()
        while job["status"] not in ENDED:
            await hear(*_far(job))
            await asyncio.sleep(LOOK_S)
            answer = await self._http.get(f"/v1/jobs/{job['id']}", headers=sent)
            if not answer.is_success:
                return answer
            job = answer.json()
        if job["status"] == "succeeded" and call.path != PLANS:
            # Of a search that stands behind another question; its plan is stored by now.
            return await self._http.request(
                call.method, call.path, params=_listed(call.query), json=call.body, headers=sent
            )
        if job["status"] == "succeeded" and job.get("result_plan_id"):
            return await self._http.get(f"/v1/plans/{job['result_plan_id']}", headers=sent)
        problem = job.get("error") or {"title": "The job was cancelled", "detail": f"job {job['id']} was cancelled"}
        return httpx.Response(httpx.codes.CONFLICT, json=problem)


def _listed(query: Mapping[str, Any]) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for name, value in query.items():
        pairs += [(name, each) for each in value] if isinstance(value, list) else [(name, value)]
    return pairs


def _far(job: Mapping[str, Any]) -> tuple[float, float | None, str]:
    said = job["progress"]
    words = f"job {job['id']} is {job['status']}, {said.get('phase') or 'waiting'}"
    return float(said.get("evaluated") or 0), None, words


@asynccontextmanager
async def door_of(app: FastAPI, *, started: bool = False) -> AsyncIterator[Door]:
    """To the service in this process; it is started here unless it runs already."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=HERE, timeout=None) as http:
        if started:
            yield Door(http)
            return
        async with app.router.lifespan_context(app):
            yield Door(http)
