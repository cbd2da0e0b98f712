"""Time and number limits of client connections that uvicorn itself does not have.

uvicorn ends a connection that is silent between two requests (``timeout_keep_alive``) and refuses a head that is too
large.  It waits for ever for a head that comes in drops, for one that never comes, and for a client that does not read
its answer.  ``PatientProtocol`` is uvicorn's own protocol with three clocks more:

head       from the first silence or byte until a request is complete; a body that nobody reads any more counts as one
answer     for a client to take something of its answer, once that fills the buffers or the connection ends
crowd      at most so many connections; a newcomer pushes out the one that has been idle for longest

The body that a route reads has its own clock (``request_body``).
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from pydantic import Field
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from api.wire.problem_details import MEDIA_TYPE, plain_problem, problem_bytes
from profiles.document import Document


class ConnectionSettings(Document):
    """How patient the server is with a connection."""

    head_s: float = Field(default=15.0, gt=0, description="for a request's line and headers to arrive")
    body_s: float = Field(default=30.0, gt=0, description="for a request's body to arrive")
    keep_alive_s: int = Field(default=30, ge=1, description="between two requests of a connection")
    answer_s: float = Field(default=60.0, gt=0, description="for a client that does not read to go on reading")
    most: int = Field(default=500, ge=1, description="connections at once")
    head_bytes: int = Field(default=16 * 1024, ge=1024, description="a request's line and headers")


class PatientProtocol(H11Protocol):
    """One connection."""

    limits: ClassVar[ConnectionSettings] = ConnectionSettings()
    _idle_since_s: float = 0.0
    _unsent_bytes: int = 0
    _head_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came."""
        super().connection_made(transport)
        self._begin_waiting()
        if len(self.connections) > self.limits.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        super().data_received(data)
        if self._serves():
            self._stop(head=True)
        elif self._head_timer is None:
            self._begin_waiting()

    def on_response_complete(self) -> None:
        """A request is answered."""
        super().on_response_complete()
        self._stop(head=True)
        self._idle_since_s = self.loop.time()
        if self.transport.is_closing():
            self._watch_answer()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP, or more of it than a head may have."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else HTTPStatus.BAD_REQUEST
        known = {HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: f"longer than {self.limits.head_bytes:,} bytes together"}
        self._refuse(status, f"the request's line and headers are {known.get(HTTPStatus(status), 'no HTTP/1.1')}")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer what never became a request, and end the connection."""
        content = problem_bytes(plain_problem(status, detail))
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(content)).encode()),
            (b"connection", b"close"),
        ]
        events = (
            h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode()),
            h11.Data(data=content),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
        self._watch_answer()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._watch_answer()

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop(answer=True)

    def timeout_keep_alive_handler(self) -> None:
        """Nothing came for too long after an answer."""
        super().timeout_keep_alive_handler()
        self._watch_answer()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop(head=True, answer=True)
        super().connection_lost(exc)

    def _serves(self) -> bool:
        """Whether a request is being answered."""
        # None before the first request, whatever uvicorn's annotation says.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _begin_waiting(self) -> None:
        self._idle_since_s = self.loop.time()
        self._head_timer = self.loop.call_later(self.limits.head_s, self._too_slow)

    def _too_slow(self) -> None:
        self._head_timer = None
        if self._serves():
            return
        begun, _ = self.conn.trailing_data
        if begun and self.conn.our_state is h11.IDLE:
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT, f"the request's head was not there within {self.limits.head_s:g} s"
            )
        else:
            self._end()

    def _end(self) -> None:
        # What was answered before is still sent.
        self.transport.close()
        self._watch_answer()

    def _watch_answer(self) -> None:
        if self._answer_timer is None:
            self._unsent_bytes = self.transport.get_write_buffer_size()
            self._answer_timer = self.loop.call_later(self.limits.answer_s, self._look_at_answer)

    def _look_at_answer(self) -> None:
        """Cut a connection whose client took nothing since the last look; a slow one may go on."""
        self._answer_timer = None
        if 0 < self.transport.get_write_buffer_size() < self._unsent_bytes:
            self._watch_answer()
        else:
            self.transport.abort()

    def _make_room(self) -> None:
        idle = [each for each in self.connections if isinstance(each, PatientProtocol) and not each._serves()]
        oldest = min(idle, key=lambda each: (each.transport.get_write_buffer_size(), each._idle_since_s), default=self)
        # Its connection is only lost in the next round of the loop; until then it must not be chosen again.
        self.connections.discard(oldest)
        oldest.transport.abort()

    def _stop(self, *, head: bool = False, answer: bool = False) -> None:
        if head and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if answer and self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None


def patient(limits: ConnectionSettings) -> type[Any]:
    """The protocol with these limits; uvicorn makes one for each connection and hands it nothing of ours."""
    return type("PatientProtocol", (PatientProtocol,), {"limits": limits})
