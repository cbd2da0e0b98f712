"""OpenTelemetry tracing: spans around a request or a job, its searches and its transactions.

Off unless the operator names a collector (OTLP over HTTP); then requests that carry a ``traceparent`` continue their
caller's trace, and jobs that of the request that asked for them.  Nothing here is global: the tracer travels in the
context of the request.  Attributes follow the semantic conventions of OpenTelemetry for HTTP and databases; none holds
a header, a body or SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pydantic import Field

from planner.errors import DocumentInvalid
from planner.store.watching import WATCH
from planner.version import __version__
from profiles.document import Document

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, SpanKind, Tracer

TRACER: ContextVar[Tracer | None] = ContextVar("meshwright_tracer", default=None)
"""Of the request or the attempt that runs in this context; None = it is not traced."""
SERVER_ERROR = 500


class TracingSettings(Document):
    """Where spans go."""

    endpoint: str = Field(
        pattern=r"^https?://[^\s?#]+$", description="a collector that takes OTLP over HTTP, such as http://host:4318"
    )
    service_name: str = Field(default="meshwright", min_length=1, max_length=200)
    sample_fraction: float = Field(default=1.0, gt=0, le=1, description="of traces that begin here")


class Tracing:
    """Makes the spans of requests."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("meshwright", __version__)

    @classmethod
    def of(cls, settings: TracingSettings | None) -> Tracing | None:
        """Tracing as the settings want it.  Raises DocumentInvalid without the libraries."""
        if settings is None:
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
        except ModuleNotFoundError:
            raise DocumentInvalid(
                "traces need libraries that are not installed", where="tracing", hint="pip install 'meshwright[otel]'"
            ) from None
        resource = Resource.create({"service.name": settings.service_name, "service.version": __version__})
        provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(settings.sample_fraction)), resource=resource)
        endpoint = settings.endpoint.rstrip("/") + "/v1/traces"
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        return cls(provider)

    def close(self) -> None:
        """Send what waits, and end.  Blocks."""
        self._provider.shutdown()

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
        """A span around a request; what runs inside finds the tracer in its context."""
        from opentelemetry.trace import SpanKind

        with self._continued(method, headers, SpanKind.SERVER) as opened:
            yield RequestSpan(opened)

    @contextmanager
    def attempt(self, job: str, traceparent: str | None) -> Iterator[AttemptSpan]:
        """A span around an attempt at a job, in the trace of the request that asked for it."""
        from opentelemetry.trace import SpanKind

        headers = {} if traceparent is None else {"traceparent": traceparent}
        with self._continued("attempt", headers, SpanKind.CONSUMER) as opened:
            opened.set_attribute("meshwright.job_id", job)
            yield AttemptSpan(opened)

    @contextmanager
    def _continued(self, name: str, headers: Mapping[str, str], kind: SpanKind) -> Iterator[Span]:
        """A span that continues a caller's trace; what runs inside finds the tracer in its context."""
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract(headers)
        with self._tracer.start_as_current_span(name, parent, kind) as opened:
            tracer, watch = TRACER.set(self._tracer), WATCH.set(_transaction)
            try:
                yield opened
            finally:
                WATCH.reset(watch)
                TRACER.reset(tracer)


class _OpenSpan:
    """A span that is still open."""

    def __init__(self, opened: Span) -> None:
        self._span = opened

    @property
    def trace_id(self) -> str:
        """As collectors and ``traceparent`` write it."""
        return f"{self._span.get_span_context().trace_id:032x}"


class RequestSpan(_OpenSpan):
    """The span of one request."""

    def ended(self, method: str, route: str, status: int, request_id: str) -> None:
        """Say what became of it."""
        from opentelemetry.trace import StatusCode

        self._span.update_name(f"{method} {route}")
        self._span.set_attributes(
            {
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": status,
                "meshwright.request_id": request_id,
            }
        )
        if status >= SERVER_ERROR:
            self._span.set_status(StatusCode.ERROR)


class AttemptSpan(_OpenSpan):
    """The span of one attempt at a job."""

    def ended(self, status: str, attempt: int, result_kind: str) -> None:
        """Say what became of it."""
        from opentelemetry.trace import StatusCode

        self._span.set_attributes(
            {"meshwright.status": status, "meshwright.attempt": attempt, "meshwright.result_kind": result_kind}
        )
        if status == "failed":
            self._span.set_status(StatusCode.ERROR)


def traceparent() -> str | None:
    """What continues the trace of this context elsewhere (W3C Trace Context); None where nothing is traced."""
    if TRACER.get() is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Span | None]:
    """A span inside the request's; None where the request is not traced."""
    tracer = TRACER.get()
    if tracer is None:
        yield None
        return
    with tracer.start_as_current_span(name, attributes=attributes) as opened:
        yield opened


def _transaction(kind: str) -> Any:
    return span(f"database {kind}", **{"db.operation.name": kind})
