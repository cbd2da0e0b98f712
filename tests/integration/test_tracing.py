"""Spans of real requests: which there are, how they hang together, what they do not tell, and that they arrive."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import ValidationError

from api.app import create_app
from api.jobs.dbos_board import DbosBoard
from api.settings import Settings
from api.telemetry.logs import JsonLines
from api.telemetry.tracing import TRACER, Tracing, TracingSettings
from tests.job_workers import PATIENCE_S, WorkerProcess, ended, quick_settings
from tests.running_service import ADDRESS, question, service

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def trace(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id


def number(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def test_a_request_its_search_and_its_transactions_are_one_trace(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(JsonLines())
    caplog.set_level("INFO")
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = create_app(Settings(database=database_url, solver_processes=1), None, Tracing(provider))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        made = client.post("/v1/plans", json=question(), headers={"traceparent": CALLER, "x-request-id": "r1"})
        assert made.status_code == 200
        spans = exporter.get_finished_spans()
        (root,) = (each for each in spans if each.name == "POST /v1/plans")
        assert f"{trace(root):032x}" == CALLER.split("-")[1]
        assert root.parent is not None
        assert f"{root.parent.span_id:016x}" == CALLER.split("-")[2]
        assert dict(root.attributes or {}) == {
            "http.request.method": "POST",
            "http.route": "/v1/plans",
            "http.response.status_code": 200,
            "meshwright.request_id": "r1",
        }
        inside = [each for each in spans if each.parent is not None and each.parent.span_id == number(root)]
        (solve,) = (each for each in inside if each.name == "solve")
        assert dict(solve.attributes or {}) == {"meshwright.task": "plan", "meshwright.outcome": "done"}
        assert {"database read", "database write"} <= {each.name for each in inside}
        assert {trace(each) for each in spans} == {trace(root)}
        lines = [json.loads(line) for line in caplog.text.splitlines() if line.startswith("{")]
        assert [each["trace_id"] for each in lines if each["message"] == "request"] == [CALLER.split("-")[1]]
        exporter.clear()
        client.get("/v1/plans/nothing", headers={"traceparent": "00-no-trace"})
        (root,) = (each for each in exporter.get_finished_spans() if each.name == "GET /v1/plans/{plan}")
        assert root.parent is None
        assert "nothing" not in str(root.to_json())
    assert TRACER.get() is None


def test_without_a_collector_nothing_is_traced(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path / 'plans.db'}") as client:
        found: list[object] = []

        @client.app.get("/look")  # type: ignore[attr-defined, untyped-decorator]
        async def look() -> dict[str, Any]:
            found.append(TRACER.get())
            return {}

        client.app.router.routes.insert(0, client.app.router.routes.pop())  # type: ignore[attr-defined]
        assert client.get("/look").status_code == 200
        assert found == [None]


@contextmanager
def collecting() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A collector: its address, and what came with which path."""
    came: list[tuple[str, bytes]] = []

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the base class's own name
            came.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_spans_reach_the_collector_before_the_service_ends(tmp_path: Path) -> None:
    with collecting() as (address, came):
        tracing = TracingSettings(endpoint=address + "/", service_name="planner")
        with service(f"sqlite:///{tmp_path / 'plans.db'}", tracing=tracing) as client:
            assert client.get("/v1/plans").status_code == 200
        assert {path for path, _ in came} == {"/v1/traces"}
        messages = [ExportTraceServiceRequest.FromString(content) for _, content in came]
    resources = [each for message in messages for each in message.resource_spans]
    names = {span.name for each in resources for scope in each.scope_spans for span in scope.spans}
    assert {"GET /v1/plans", "database read"} <= names
    said = {item.key: item.value.string_value for each in resources for item in each.resource.attributes}
    assert said["service.name"] == "planner"


def test_a_job_in_a_worker_continues_the_trace_of_its_request(database_url: str) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with collecting() as (address, came), DbosBoard.open(database_url) as board:
        settings = quick_settings(database_url, tracing={"endpoint": address, "service_name": "worker"})
        app = create_app(Settings(database=database_url, solver_processes=1), board, Tracing(provider))
        client = TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
        with WorkerProcess(settings) as worker, client:
            asked = {"traceparent": CALLER, "prefer": "respond-async"}
            job = client.post("/v1/plans", json=question(), headers=asked).json()["id"]
            assert ended(board, [job], PATIENCE_S)[0].status == "succeeded"
            worker.drain()
            assert worker.process.wait(PATIENCE_S) == 0
        messages = [ExportTraceServiceRequest.FromString(content) for _, content in came]
    (root,) = (each for each in exporter.get_finished_spans() if each.name == "POST /v1/plans")
    scopes = [scope for message in messages for each in message.resource_spans for scope in each.scope_spans]
    spans = {span.name: span for scope in scopes for span in scope.spans}
    assert {"attempt", "solve", "database read", "database write"} <= set(spans)
    assert {span.trace_id.hex() for span in spans.values()} == {CALLER.split("-")[1]}
    attempt = spans["attempt"]
    assert attempt.parent_span_id.hex() == f"{number(root):016x}"
    assert spans["solve"].parent_span_id == attempt.span_id
    said = {item.key: item.value.string_value or item.value.int_value for item in attempt.attributes}
    assert said == {
        "meshwright.job_id": job,
        "meshwright.status": "succeeded",
        "meshwright.attempt": 1,
        "meshwright.result_kind": "plan",
    }


@pytest.mark.parametrize("endpoint", ["collector:4317", "ftp://x", "http://", "http://x/?key=secret", ""])
def test_a_collector_is_an_http_address(endpoint: str) -> None:
    with pytest.raises(ValidationError):
        TracingSettings(endpoint=endpoint)
