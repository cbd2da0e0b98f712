"""The outer layer of every request: an id, a clock, counters, safe headers, and a problem document for errors.

Outermost of all layers, in plain ASGI: it sees requests that match no route and errors that no handler caught.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access.audit import STATE as BEGUN
from api.access.auth import QUOTA
from api.access.auth import STATE as CALLER
from api.access.hosts import PROBES
from api.http.problem_responses import CLIENT_GONE
from api.telemetry.logs import CONTEXT, FIELDS
from api.telemetry.metrics import Metrics
from api.telemetry.tracing import Tracing
from api.wire.problem_details import MEDIA_TYPE, plain_problem, problem_bytes

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""A client's own id is kept if it is harmless in a log line."""

SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
DATA_POLICY = b"default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    b" img-src 'self' data:"
)
"""Content-Security-Policy of answers that are data, and of pages: their own scripts, styles and API, nothing else."""

JOBS = "/v1/jobs/"

log = logging.getLogger("meshwright.api")
access = logging.getLogger("meshwright.access")


class Envelope:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, metrics: Metrics, tracing: Tracing | None = None) -> None:
        self.app = app
        self.metrics = metrics
        self.tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        if self.tracing is None:
            await self._serve(scope, receive, send, {"request_id": request_id})
            return
        parent = {"traceparent": _header(scope["headers"], b"traceparent")}
        with self.tracing.request(scope["method"], parent) as traced:
            said = {"request_id": request_id, "trace_id": traced.trace_id}
            status = await self._serve(scope, receive, send, said)
            traced.ended(scope["method"], _route(scope), status, request_id)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, said: dict[str, str]) -> int:
        """The status of the answer; ``said`` is what every line of the log says meanwhile."""
        context, start_s = CONTEXT.set(said), time.perf_counter()
        status, location = 0, ""

        async def send_with_headers(message: Message) -> None:
            nonlocal status, location
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_headers(message.get("headers", ()), said["request_id"])
                message["headers"] += scope["state"].get(QUOTA, ())
                location = _header(message["headers"], b"location")
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            log.exception("the request failed")
            if status:
                raise
            await _send_internal(send_with_headers, said["request_id"])
        finally:
            self._ended(scope, status or CLIENT_GONE, location, time.perf_counter() - start_s)
            CONTEXT.reset(context)
        return status or CLIENT_GONE

    def _ended(self, scope: Scope, status: int, location: str, duration_s: float) -> None:
        """Count the request, end its entry of the audit trail, and say it in the log."""
        route = _route(scope)
        self.metrics.observe_request(scope["method"], route, status, duration_s)
        begun = scope["state"].get(BEGUN)
        if begun is not None:
            audit, event = begun
            audit.end(event, status, location)
        # Probes come every few seconds.
        level = logging.DEBUG if route in PROBES else logging.INFO
        if not access.isEnabledFor(level):
            return
        caller = scope["state"].get(CALLER)
        fields = {
            "method": scope["method"],
            "route": route,
            "status": status,
            "duration_s": round(duration_s, 6),
            "principal": None if caller is None else caller.principal,
            "job_id": scope.get("path_params", {}).get("job") or _job_of(location),
        }
        access.log(level, "request", extra={FIELDS: fields})


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text: str = value.decode("latin-1")
            if REQUEST_ID.fullmatch(text):
                return text
    return uuid.uuid4().hex


def _with_headers(headers: Any, request_id: str) -> list[tuple[bytes, bytes]]:
    given = [(name.lower(), value) for name, value in headers]
    known = {name for name, _ in given}
    page = dict(given).get(b"content-type", b"").startswith(b"text/html")
    policies = (
        (b"content-security-policy", PAGE_POLICY if page else DATA_POLICY),
        # A page may hand a trace to the tab that it opens on Perfetto; nothing else shares a window with it.
        (b"cross-origin-opener-policy", b"same-origin-allow-popups" if page else b"same-origin"),
    )
    ours = [*SAFE_HEADERS, *policies, (b"cache-control", b"no-store"), (b"x-request-id", request_id.encode("latin-1"))]
    return [*given, *((name, value) for name, value in ours if name not in known)]


def _header(headers: Any, name: bytes) -> str:
    return next((str(value, "latin-1") for key, value in headers if key == name), "")


def _job_of(location: str) -> str | None:
    return location.removeprefix(JOBS) if location.startswith(JOBS) else None


def _route(scope: Scope) -> str:
    """The route's pattern, never the path: a label per path would grow without end."""
    route = scope.get("route")
    return str(getattr(route, "path", "unmatched"))


async def _send_internal(send: Send, request_id: str) -> None:
    body = problem_bytes(plain_problem(500, "a mistake of the service; its log has the details", request_id))
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": body})
