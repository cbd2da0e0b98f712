"""Lost connections, busy services, redirects and strangers: a scripted server on real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from api.client import Client, Patience, ProblemReported, ServiceAnswerInvalid, ServiceUnreachable
from api.wire.problem_details import MEDIA_TYPE

KEY = "mw_12345678.very-secret"
VERSION = {"version": "9", "software_signature": "s", "schema_revision": "r"}
QUESTION: dict[str, Any] = {"model": "m"}


@dataclass(slots=True)
class Heard:
    """Requests as a server heard them."""

    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


Answer = tuple[int, dict[str, str], bytes]
GOOD: Answer = (200, {"Content-Type": "application/json"}, json.dumps(VERSION).encode())


def problem(status: int, slug: str, **headers: str) -> Answer:
    body = {"type": f"x/{slug}", "slug": slug, "title": "T", "status": status, "detail": "D"}
    return status, {"Content-Type": MEDIA_TYPE, **headers}, json.dumps(body).encode()


@contextmanager
def scripted(*answers: Answer | None) -> Iterator[tuple[str, Heard]]:
    """A server that gives these answers one after the other, the last one for ever; None = it hangs up."""
    heard, lock = Heard(), threading.Lock()

    class Scripted(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            with lock:
                number = len(heard.requests)
                lowered = {name.lower(): value for name, value in self.headers.items()}
                heard.requests.append((self.command, self.path, lowered, body))
            answer = answers[min(number, len(answers) - 1)]
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            status, headers, content = answer
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = answer  # noqa: N815  # names of the base class

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def finish(self) -> None:
            """A connection that was closed on purpose has nothing to flush."""
            if not self.wfile.closed and self.connection.fileno() != -1:
                super().finish()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def patient(waits: list[float], **changes: Any) -> Patience:
    return Patience(sleep=waits.append, **changes)


def test_a_busy_service_is_asked_again_when_it_says() -> None:
    waits: list[float] = []
    busy = problem(503, "service-busy", **{"Retry-After": "3"})
    many = problem(429, "too-many-requests", **{"Retry-After": "1"})
    with scripted(busy, many, GOOD) as (address, heard), Client(address, patience=patient(waits)) as client:
        assert client.version().version == "9"
    assert waits == [3.0, 1.0]
    assert len(heard.requests) == 3


def test_a_wait_that_is_too_long_is_the_callers_decision() -> None:
    waits: list[float] = []
    busy = problem(429, "queue-full", **{"Retry-After": "600"})
    with scripted(busy) as (address, heard), Client(address, patience=patient(waits)) as client:
        with pytest.raises(ProblemReported) as full:
            client.version()
        assert full.value.retry_after_s == 600
    assert (waits, len(heard.requests)) == ([], 1)


@pytest.mark.parametrize("lost", [None, (502, {"Content-Type": "text/html"}, b"<h1>Bad Gateway</h1>")])
def test_a_lost_answer_is_asked_for_again_under_the_same_key(lost: Answer | None) -> None:
    waits: list[float] = []
    refused = problem(422, "no-feasible-plan")
    with (
        scripted(lost, problem(409, "key-in-flight", **{"Retry-After": "1"}), refused) as (address, heard),
        Client(address, patience=patient(waits)) as client,
        pytest.raises(ProblemReported),
    ):
        client.plan(QUESTION)
    keys = {headers["idempotency-key"] for _, _, headers, _ in heard.requests}
    bodies = {body for _, _, _, body in heard.requests}
    assert (len(heard.requests), len(keys), len(bodies)) == (3, 1, 1)
    assert len(waits) == 2


def test_two_calls_have_two_keys() -> None:
    with scripted(problem(422, "document-invalid")) as (address, heard), Client(address) as client:
        for _ in range(2):
            with pytest.raises(ProblemReported):
                client.plan(QUESTION)
    assert len({headers["idempotency-key"] for _, _, headers, _ in heard.requests}) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500, 504, 507])
def test_what_will_not_pass_is_said_at_once(status: int) -> None:
    waits: list[float] = []
    with scripted(problem(status, "some-slug")) as (address, heard), Client(address, patience=patient(waits)) as client:
        with pytest.raises(ProblemReported) as said:
            client.version()
        assert (said.value.status, said.value.type, said.value.title, said.value.detail) == (
            status,
            "x/some-slug",
            "T",
            "D",
        )
    assert (waits, len(heard.requests)) == ([], 1)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_said_and_the_key_goes_nowhere_else(status: int) -> None:
    with scripted(GOOD) as (elsewhere, heard):
        moved: Answer = (status, {"Location": f"{elsewhere}/version"}, b"")
        with scripted(moved) as (address, asked), Client(address, KEY) as client:
            with pytest.raises(ServiceAnswerInvalid, match="it is at") as said:
                client.version()
            assert elsewhere in said.value.what
            assert [headers["authorization"] for _, _, headers, _ in asked.requests] == [f"Bearer {KEY}"]
    assert heard.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"Content-Type": "text/html"}, b"<html>Log in</html>"),
        (200, {"Content-Type": "application/json"}, b'{"version": 3}'),
        (404, {"Content-Type": "text/plain"}, b"nothing"),
        (422, {"Content-Type": MEDIA_TYPE}, b"{"),
        (200, {"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"no gzip"),
    ],
)
def test_a_stranger_at_the_address_is_one_error(answer: Answer) -> None:
    with (
        scripted(answer) as (address, _),
        Client(address, patience=patient([], retries=0)) as client,
        pytest.raises((ServiceAnswerInvalid, ServiceUnreachable)) as said,
    ):
        client.version()
    assert said.value.hint


def test_a_newer_service_may_say_more() -> None:
    more = json.dumps({**VERSION, "colour": "green"}).encode()
    with scripted((200, {"Content-Type": "application/json"}, more)) as (address, _), Client(address) as client:
        assert client.version().software_signature == "s"


def test_no_log_line_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with (
        scripted(problem(401, "not-authenticated")) as (address, heard),
        Client(address, KEY) as client,
        pytest.raises(ProblemReported) as refused,
    ):
        client.version()
    assert heard.requests[0][2]["authorization"] == f"Bearer {KEY}"
    assert caplog.records
    shown = caplog.text + str(refused.value) + repr(refused.value) + repr(client)
    assert "very-secret" not in shown


def test_a_proxy_is_not_asked_about_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    with scripted(GOOD) as (address, _), Client(address, patience=patient([], retries=0)) as client:
        assert client.version().version == "9"
