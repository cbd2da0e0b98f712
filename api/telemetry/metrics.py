"""Prometheus metrics: counters and histograms of one application, in a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from api.wire.jobs import QueueCounts

REQUEST_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The service's measurements."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "meshwright_http_requests",
            "Requests by method, route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._request_s = Histogram(
            "meshwright_http_request_seconds",
            "Duration of requests.",
            ("method", "route"),
            buckets=REQUEST_BUCKETS_S,
            registry=self.registry,
        )
        self._solves = Counter(
            "meshwright_solves", "Searches and views computed, by task and outcome.", ("task", "outcome"),
            registry=self.registry,
        )  # fmt: skip
        self._solve_s = Histogram(
            "meshwright_solve_seconds", "Duration of computations.", ("task",), buckets=REQUEST_BUCKETS_S,
            registry=self.registry,
        )  # fmt: skip
        self._answers = Counter(
            "meshwright_answers", "Planning questions by where the answer came from.", ("source",),
            registry=self.registry,
        )  # fmt: skip
        self._lost_audit = Counter(
            "meshwright_audit_events_lost", "Audit events that are only in the log.", registry=self.registry
        )
        self._queued = Gauge("meshwright_jobs_queued", "Jobs that wait.", registry=self.registry)
        self._running = Gauge("meshwright_jobs_running", "Jobs that run.", registry=self.registry)
        self._workers = Gauge("meshwright_workers", "Workers that show themselves.", registry=self.registry)
        self._refused = Gauge(
            "meshwright_stale_writes_refused", "Writes of a worker to a job that it had lost, since it started.",
            ("worker",), registry=self.registry,
        )  # fmt: skip
        self._oldest = Gauge("meshwright_oldest_queued_seconds", "Age of the oldest job.", registry=self.registry)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request ended."""
        known = method if method in {"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"} else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._request_s.labels(known, route).observe(seconds)

    def observe_solve(self, task: str, outcome: str, seconds: float) -> None:
        """One computation ended."""
        self._solves.labels(task, outcome).inc()
        self._solve_s.labels(task).observe(seconds)

    def count_answer(self, source: str) -> None:
        """One question was answered from ``source``: memory, database, flight, search, job."""
        self._answers.labels(source).inc()

    def count_lost_audit(self) -> None:
        """One event of the audit trail went to the log only."""
        self._lost_audit.inc()

    def show_queue(self, counts: QueueCounts) -> None:
        """Set the gauges of the queue."""
        self._queued.set(counts.queued)
        self._running.set(counts.running)
        self._oldest.set(counts.oldest_queued_s)
        self._workers.set(len(counts.refused_of_worker))
        self._refused.clear()
        for worker, refused in counts.refused_of_worker.items():
            self._refused.labels(worker).set(refused)

    def page(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)
