"""The parts of a running service: made once, reached by routes through ``service_of``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from api.access.audit import Audit
from api.access.auth import Authenticator
from api.access.oidc.tokens import TokenVerifier
from api.access.rates import Rates
from api.access.streams import Streams
from api.errors import ServiceBusy
from api.jobs.board import JobBoard
from api.planning.answers import Answers
from api.planning.key_releases import KeyReleases
from api.planning.resolving import Resolver
from api.retention import Pruning
from api.settings import Settings
from api.solving.flights import Flights, RecentAnswers
from api.solving.task_runner import TaskRunner
from api.solving.turns import Turns
from api.sweeps.driver import SweepDriver
from api.telemetry.metrics import Metrics
from planner.store.repository import Store
from planner.store.service import ServiceStore

STREAM_THREADS, PROBE_THREADS = 8, 2


@dataclass(slots=True)
class Service:
    """Everything that routes need."""

    settings: Settings
    metrics: Metrics
    store: Store
    records: ServiceStore
    resolver: Resolver
    authenticator: Authenticator
    audit: Audit
    searches: TaskRunner
    quick: TaskRunner
    answers: Answers
    releases: KeyReleases
    views: RecentAnswers[bytes]
    view_flights: Flights[bytes]
    jobs: JobBoard | None
    sweeps: SweepDriver | None
    curve_turns: Turns
    streams: Streams
    stream_threads: CapacityLimiter
    """Those that read events; many streams take nothing from other requests."""
    probe_threads: CapacityLimiter
    """Kept for probes, which are answered whatever else waits for the database."""
    draining: bool = False

    def board(self) -> JobBoard:
        """The jobs.  Raises ServiceBusy where this service runs none."""
        if self.jobs is None:
            raise ServiceBusy("this service runs no jobs", hint="ask for less, or start it with a job worker")
        return self.jobs

    def wake_sweeps(self) -> None:
        """A sweep came, or is to end."""
        if self.sweeps is not None:
            self.sweeps.wake()


@asynccontextmanager
async def running(
    settings: Settings, metrics: Metrics, store: Store, jobs: JobBoard | None, tokens: TokenVerifier | None
) -> AsyncIterator[Service]:
    """A started service; its processes end with the block.  The store stays the caller's."""
    records = store.service()
    searches, quick = (
        TaskRunner(size, settings.solver_memory_bytes, metrics, settings.most_of_caller(size))
        for size in (settings.solver_processes, settings.quick_processes)
    )
    rates = Rates(settings.requests_per_s, settings.burst)
    service = Service(
        settings=settings,
        metrics=metrics,
        store=store,
        records=records,
        resolver=Resolver(records, settings),
        authenticator=Authenticator(records, rates, required=settings.authentication, tokens=tokens),
        audit=Audit(store.audit(), metrics),
        searches=searches,
        quick=quick,
        answers=Answers(store, searches, metrics, settings),
        releases=KeyReleases(records),
        views=RecentAnswers(settings.cached_answers),
        view_flights=Flights(),
        jobs=jobs,
        sweeps=None if jobs is None else SweepDriver(store, jobs),
        # One after the other: each uses every process.
        curve_turns=Turns(1, 1),
        streams=Streams(settings.streams, settings.streams_of_caller),
        stream_threads=CapacityLimiter(STREAM_THREADS),
        probe_threads=CapacityLimiter(PROBE_THREADS),
    )
    service.audit.start()
    pruning = Pruning(store, jobs, settings.retention)
    pruning.start()
    if service.sweeps is not None:
        service.sweeps.start()
    releasing = asyncio.create_task(service.releases.run())
    await searches.start()
    await quick.start()
    try:
        yield service
    finally:
        service.draining = True
        releasing.cancel()
        await searches.stop()
        await quick.stop()
        await to_thread.run_sync(pruning.stop)
        if service.sweeps is not None:
            await to_thread.run_sync(service.sweeps.stop)
        await to_thread.run_sync(service.audit.stop)


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service
