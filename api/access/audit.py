"""The audit trail: a change is recorded before it is made, or it is not made; answers and refusals afterwards.

begun     written before a request changes anything; when it cannot be written the request is refused (503, 507)
ended     the answer of such a request, written beside it
refused   401 and 403, written beside the answer; when they come too fast one row stands for many

What is written beside an answer delays and fails no request: while the database is away it is lost from the table, and
goes to the log instead.  Requests that only read are not recorded.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import re
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace

from fastapi import Request

from api.access.auth import Caller
from api.access.rates import Rates
from api.batches import next_batch
from api.errors import ServiceBusy, TooManyRequests
from api.telemetry.metrics import Metrics
from planner.store.audit import AuditTrail
from planner.store.errors import StoreFull, StoreReadOnly, StoreUnavailable
from planner.store.records import AuditEvent
from profiles.errors import MeshwrightError

MOST_IN_A_COMMIT = 64
MOST_WAITING = 5_000
REFUSALS_PER_S = 1.0
REFUSALS_AT_ONCE = 100
"""Refusals with a row of their own: whoever knocks a thousand times a second must not fill the disk."""
END_WAIT_S = 10.0
RETRY_AFTER_S = 5
STATE = "audited"
"""Where a request's scope keeps what was begun, for the envelope to end."""

_PREFIX = re.compile(r"[0-9a-f]{8}")

log = logging.getLogger("meshwright.audit")


@dataclass(frozen=True, slots=True)
class _Waiting:
    event: AuditEvent
    written: Future[None] | None


class Audit:
    """The audit trail of a running service: one thread writes, many events a transaction."""

    def __init__(self, trail: AuditTrail, metrics: Metrics) -> None:
        self.trail = trail
        self._metrics = metrics
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._refusals = Rates(REFUSALS_PER_S, REFUSALS_AT_ONCE)
        self._unwritten: AuditEvent | None = None
        self._thread = threading.Thread(target=self._serve, name="audit-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, and end."""
        if self._unwritten is not None:
            self._note(self._unwritten)
        self._waiting.put(None)
        self._thread.join(END_WAIT_S)

    async def begin(self, request: Request, caller: Caller) -> None:
        """Put on record what is about to be changed; once a request.

        Raises ServiceBusy, StoreError: then change nothing.
        """
        if STATE in request.scope["state"]:
            return
        event = event_of(request, "begun", caller)
        written: Future[None] = Future()
        if self._waiting.qsize() > MOST_WAITING:
            raise _cannot()
        self._waiting.put(_Waiting(event, written))
        try:
            await asyncio.wrap_future(written)
        except (StoreUnavailable, StoreReadOnly, StoreFull):
            # What is wrong with the database, which the request would have met next.
            raise
        except MeshwrightError as error:
            raise _cannot() from error
        request.scope["state"][STATE] = self, event

    def end(self, begun: AuditEvent, status: int, location: str) -> None:
        """Put the answer of a request that was begun on record."""
        self._note(replace(begun, phase="ended", status=status, resource=location or begun.resource))

    def refuse(self, request: Request, status: int, caller: Caller | None) -> None:
        """Put a refusal on record; among many, one now and then that stands for those before it."""
        event, unwritten = replace(event_of(request, "refused", caller), status=status), self._unwritten
        if unwritten is not None:
            event = replace(event, count=unwritten.count + 1)
        try:
            self._refusals.take("")
        except TooManyRequests:
            self._unwritten = event
        else:
            self._unwritten = None
            self._note(event)

    def _note(self, event: AuditEvent) -> None:
        if self._waiting.qsize() > MOST_WAITING:
            self._lose(event)
        else:
            self._waiting.put(_Waiting(event, None))

    def _lose(self, event: AuditEvent) -> None:
        self._metrics.count_lost_audit()
        log.error("this event could not be put on record: %s", asdict(event))

    def _serve(self) -> None:
        ended = False
        while not ended:
            batch, ended = next_batch(self._waiting, MOST_IN_A_COMMIT)
            self._write(batch)

    def _write(self, batch: list[_Waiting]) -> None:
        try:
            self.trail.append([item.event for item in batch])
        except Exception as error:  # the thread must live on, and whoever waits must hear of it
            if not isinstance(error, MeshwrightError):
                log.exception("the audit trail failed")
            why = error if isinstance(error, MeshwrightError) else _cannot()
            for item in batch:
                if item.written is None:
                    self._lose(item.event)
                elif item.written.set_running_or_notify_cancel():
                    item.written.set_exception(why)
            return
        for item in batch:
            if item.written is not None and item.written.set_running_or_notify_cancel():
                item.written.set_result(None)


def event_of(request: Request, phase: str, caller: Caller | None) -> AuditEvent:
    """What a request is, as the trail keeps it: never a header's or a body's content."""
    route = request.scope.get("route")
    return AuditEvent(
        phase=phase,
        request_id=str(request.scope["state"].get("request_id", "")),
        kind="unknown" if caller is None else caller.kind,
        principal=_claimed_prefix(request) if caller is None else caller.principal,
        client=request.client.host if request.client is not None else "",
        method=request.method,
        route=str(getattr(route, "path", "")),
        resource="/".join(str(value) for value in request.path_params.values()),
    )


def _claimed_prefix(request: Request) -> str:
    """The key that a stranger claims to have, where the text has the form of one; anything else may be a secret."""
    text = request.headers.get("authorization", "").rpartition(" ")[2]
    prefix = text.partition(".")[0].removeprefix("mw_")
    return prefix if text.startswith("mw_") and _PREFIX.fullmatch(prefix) else ""


def _cannot() -> ServiceBusy:
    return ServiceBusy(
        "nothing is changed, because it cannot be put on record who changes it now",
        hint="repeat it later",
        retry_after_s=RETRY_AFTER_S,
    )
