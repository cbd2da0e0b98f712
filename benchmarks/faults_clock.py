"""The wall clock of a worker, and of the service, jumps by an hour to and fro while jobs run.

Leases are watched on monotonic clocks: nobody may be taken for dead, no job may run twice.  A key is good until its
hour, as the clock of the service tells it, and good again when that is set right.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from api.access.api_keys import new_key
from api.access.auth import REMEMBERED_S
from api.jobs.dbos_board import DbosBoard
from benchmarks.faults_verdict import clients_verdict, jobs_verdict
from benchmarks.job_queue import database
from planner.store import open_store
from tests.faulty_solver import HANG, PAUSE
from tests.http_load import HttpLoad
from tests.job_requests import faulty_request
from tests.job_workers import WorkerProcess, quick_settings, wait_for
from tests.service_processes import ServiceProcess
from tests.shifted_clock import ShiftedClock, faketime_library

HOUR_S = 3600
LEASE_S, SELDOM_S = 6.0, 2.0
"""Lease of a worker, and seconds between the beats of the one whose clock stands."""


class NoFaketime(Exception):
    """libfaketime is not installed (Debian: apt-get install faketime)."""


def clock_in(folder: Path) -> ShiftedClock:
    """A clock that can jump.  Raises NoFaketime."""
    library = faketime_library()
    if library is None:
        raise NoFaketime("libfaketime is not installed (Debian: apt-get install faketime)")
    return ShiftedClock(library, folder)


def worker_clock_jumps(kind: str, times: int = 10) -> dict[str, Any]:
    """The clock of one of two workers jumps while both search."""
    with (
        tempfile.TemporaryDirectory(prefix="mwfault") as folder,
        database(kind, durable=False) as (url, _),
        DbosBoard.open(url) as board,
    ):
        clock, jobs = clock_in(Path(folder)), list[str]()
        settings = quick_settings(url, concurrency=2, lease_s=LEASE_S, solver_module="tests.faulty_solver")
        # The one with the jumping clock looks several times between two beats of the other: were its watch on the wall
        # clock, it would see an hour without a beat.
        steady = replace(settings, heartbeat_s=SELDOM_S)
        with WorkerProcess(settings, clock.environment), WorkerProcess(steady):
            # One more than either worker holds: both have one that lasts through every jump, and is cancelled then.
            endless = [faulty_request(HANG, 4 * (each + 1), limited=False) for each in range(3)]
            lasting = [board.submit(request, key=None, owner="o").id for request in endless]
            for number in range(times):
                jobs += [
                    board.submit(faulty_request(PAUSE, 400 + 8 * number + 4 * each), key=None, owner="o").id
                    for each in range(2)
                ]
                wait_for(lambda: board.counts().running >= len(lasting), 60, "jobs run")
                clock.shift(HOUR_S if number % 2 else -HOUR_S)
                # Longer than a lease: who believes the clock has time to act on it.
                time.sleep(LEASE_S + 1.0)
                clock.shift(0)
            told = [event.at.timestamp() - time.time() for job in lasting for event in board.events(job)]
            for job in lasting:
                board.cancel(job)
            verdict = jobs_verdict(url, jobs + lasting)
        return {
            "database": kind,
            "fault": "clock of a worker jumps +-1 h",
            "times": times,
            **verdict,
            "farthest_clock_seen_s": max(map(abs, told)),
        }


def service_clock_jumps(kind: str, times: int = 4) -> dict[str, Any]:
    """The clock of the service jumps under load; its keys live for half an hour and for a day."""
    with (
        tempfile.TemporaryDirectory(prefix="mwfault") as folder,
        database(kind, durable=False) as (url, _),
    ):
        long, short = _keys(url)
        clock = clock_in(Path(folder))
        with (
            ServiceProcess(
                url, Path(folder), "--jobs", "0", "--auth", "keys", environment=clock.environment
            ) as service,
            WorkerProcess(quick_settings(url, lease_s=LEASE_S)),
        ):
            status = _asker(service.address, short)
            seen: list[tuple[int, int]] = []
            with HttpLoad([service.address], clients=2, pause_s=0.3, headers=long) as load:
                for number in range(times):
                    for shift_s in (HOUR_S if number % 2 else -HOUR_S, 0):
                        clock.shift(shift_s)
                        # A key is looked up anew only so often.
                        time.sleep(REMEMBERED_S + 0.5)
                        seen.append((shift_s, status()))
            return {
                "database": kind,
                "fault": "clock of the service jumps +-1 h",
                "times": times,
                **jobs_verdict(url, load.acknowledged),
                **clients_verdict(load),
                "key_of_half_an_hour": sorted(set(seen)),
            }


def _keys(url: str) -> tuple[dict[str, str], dict[str, str]]:
    """Headers with a key for a day, and with one that has half an hour left."""
    almost_a_day_ago = datetime.now(UTC) - timedelta(days=1) + timedelta(minutes=30)
    made = [new_key("long", "admin", 1), new_key("short", "admin", 1, almost_a_day_ago)]
    with open_store(url) as store:
        for _, record in made:
            store.service().add_api_key(record)
    long, short = ({"Authorization": f"Bearer {key}"} for key, _ in made)
    return long, short


def _asker(address: str, headers: dict[str, str]) -> Callable[[], int]:
    def status() -> int:
        return httpx.get(f"{address}/v1/plans", headers=headers, timeout=60).status_code

    return status
