"""PostgreSQL goes away under load: crashes that are restarted at once, and an absence of minutes.

Clients submit to a real ``meshwright serve`` and read their jobs, a real ``meshwright worker`` works.  No answer may be
a 500, each 503 says when to come back, nothing acknowledged is lost, and everything goes on by itself.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults_verdict import clients_verdict, first_end_s, jobs_verdict
from benchmarks.job_queue import database
from tests.http_load import HttpLoad
from tests.postgres_server import PostgresServer
from tests.service_processes import ServiceProcess, WorkerCommand

SETTLE_S = 3.0
PAUSE_S = 0.15
"""Between two requests of a client, so that two cores keep up and the queue stays short."""
RECOVERED_S = 20.0


@dataclass(frozen=True, slots=True)
class Outage:
    """What was seen of one absence, in seconds after the database was back."""

    ready_while_away: bool
    alive_while_away: bool
    last_refusal_s: float
    first_acknowledgement_s: float
    first_end_s: float


@dataclass(slots=True)
class Deployment:
    """A service, its database and its worker, under load."""

    url: str
    server: PostgresServer
    service: ServiceProcess
    worker: WorkerCommand
    load: HttpLoad

    def outage(self, absence_s: float) -> Callable[[], Outage]:
        """Take the database away for so long; what was seen can be asked for when the load has ended."""
        self.server.halt()
        end_s = time.monotonic() + absence_s
        ready = alive = False
        while time.monotonic() < end_s:
            ready, alive = self.service.answers("/readyz"), self.service.answers("/livez")
            time.sleep(min(0.5, max(end_s - time.monotonic(), 0.0)))
        self.server.resume()
        back_s, back_at_s = time.monotonic(), time.time()
        self._await_acknowledgement(back_s)
        time.sleep(SETTLE_S)
        until_s = time.monotonic()

        def seen() -> Outage:
            answers = [each for each in self.load.answers if back_s <= each.at_s <= until_s]
            bad = [each.at_s - back_s for each in answers if each.status not in {200, 202}]
            good = [each.at_s - back_s for each in answers if each.status == 202]
            end = first_end_s(self.url, self.load.acknowledged, back_at_s)
            return Outage(ready, alive, max(bad, default=0.0), min(good, default=float("inf")), end)

        return seen

    def _await_acknowledgement(self, since_s: float) -> None:
        while time.monotonic() < since_s + RECOVERED_S:
            if any(each.at_s > since_s and each.status == 202 for each in self.load.answers):
                return
            time.sleep(0.05)


@contextmanager
def deployment(clients: int) -> Iterator[Deployment]:
    """A service and a worker on a PostgreSQL that forgets nothing when it crashes."""
    with (
        tempfile.TemporaryDirectory(prefix="mwfault") as folder,
        database("postgresql", durable=True) as (url, server),
        ServiceProcess(url, Path(folder), "--jobs", "0") as service,
        WorkerCommand(url, Path(folder)) as worker,
    ):
        if server is None:
            raise SystemExit("only PostgreSQL can go away alone")
        load = HttpLoad([service.address], clients=clients, pause_s=PAUSE_S)
        yield Deployment(url, server, service, worker, load)


def outages(fault: str, absences_s: list[float], clients: int = 4) -> dict[str, Any]:
    """The database is away so often, each time for so long."""
    with deployment(clients) as parts:
        with parts.load:
            time.sleep(SETTLE_S)
            seen = [parts.outage(absence_s) for absence_s in absences_s]
        jobs = jobs_verdict(parts.url, parts.load.acknowledged)
        found = [each() for each in seen]
        return {
            "database": "postgresql",
            "fault": fault,
            "times": len(absences_s),
            "longest_absence_s": max(absences_s),
            **jobs,
            **clients_verdict(parts.load),
            "ready_while_away": any(each.ready_while_away for each in found),
            "alive_while_away": all(each.alive_while_away for each in found),
            "ready_afterwards": parts.service.answers("/readyz"),
            "worker_lived_on": parts.worker.process.poll() is None,
            "last_refusal_after_return_s": max(each.last_refusal_s for each in found),
            "first_acknowledgement_after_return_s": max(each.first_acknowledgement_s for each in found),
            "first_job_ended_after_return_s": max(each.first_end_s for each in found),
        }


def crash_restarts(times: int = 10) -> dict[str, Any]:
    """``pg_ctl stop -m immediate`` and start again."""
    draw = random.Random(3)
    return outages("database crash-restart", [draw.uniform(0.5, 2.0) for _ in range(times)])


def database_away(seconds: float = 120.0) -> dict[str, Any]:
    """It comes back after minutes."""
    return outages("database away", [seconds])
