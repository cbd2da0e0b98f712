"""The service itself ends and comes back: under a client that watches a job, and replica by replica under load.

A watching client must see every event of its job once, however often the service is ended.  Clients of two replicas
that are restarted one after the other, with their workers, must get every answer after one repetition at most.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from api.client import Client
from api.client.patience import Patience
from api.wire.jobs import JobEvent, JobRecord
from benchmarks.faults_verdict import clients_verdict, jobs_verdict
from benchmarks.job_queue import database
from tests.faulty_solver import HANG
from tests.http_load import HttpLoad, job_question
from tests.job_workers import WorkerProcess, quick_settings
from tests.service_processes import ServiceProcess, WorkerCommand

SETTLE_S = 2.0
ONE_REPETITION = 2


class Watcher:
    """A real client that reads the events of one job in a thread."""

    def __init__(self, address: str, job: str) -> None:
        self.events: list[JobEvent] = []
        self.failure: Exception | None = None
        self._client = Client(address, patience=Patience(retries=500, longest_wait_s=0.2))
        self._job = job
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for event in self._client.job_events(self._job):
                self.events.append(event)
        except Exception as error:  # told to whoever waits for the thread
            self.failure = error
        finally:
            self._client.close()

    def await_more(self, timeout_s: float = 60.0) -> float:
        """Seconds until one more event has come."""
        start_s, known = time.monotonic(), len(self.events)
        while len(self.events) == known:
            if time.monotonic() - start_s > timeout_s or not self.thread.is_alive():
                raise RuntimeError(f"no more events after {known}: {self.failure}")
            time.sleep(0.02)
        return time.monotonic() - start_s


def restarts_under_a_watcher(kind: str, times: int = 10) -> dict[str, Any]:
    """SIGTERM and kill -9 in turn while a client watches a job that never ends by itself; then it is cancelled."""
    with (
        tempfile.TemporaryDirectory(prefix="mwfault") as folder,
        database(kind, durable=False) as (url, _),
        ServiceProcess(url, Path(folder), "--jobs", "0") as service,
        WorkerProcess(quick_settings(url, solver_module="tests.faulty_solver")),
    ):
        headers = {"Prefer": "respond-async"}
        question = job_question(1, seed=HANG)
        made = httpx.post(f"{service.address}/v1/plans", json=question, headers=headers, timeout=60)
        job = JobRecord.model_validate_json(made.content).id
        watcher = Watcher(service.address, job)
        watcher.await_more()
        ends, resumes = [], []
        for number in range(times):
            watcher.await_more()
            start_s = time.monotonic()
            if number % 2:
                service.kill()
            else:
                ends.append(service.terminate())
            service.start_again()
            watcher.await_more()
            resumes.append(time.monotonic() - start_s)
        httpx.post(f"{service.address}/v1/jobs/{job}:cancel", timeout=60).raise_for_status()
        watcher.thread.join(60)
        seen = [event.seq for event in watcher.events]
        return {
            "database": kind,
            "fault": "service restart under a watcher",
            "times": times,
            "events": len(seen),
            "events_missing": max(seen) - len(set(seen)),
            "events_doubled": len(seen) - len(set(seen)),
            "in_order": seen == sorted(seen),
            "watcher_failed": None if watcher.failure is None else str(watcher.failure),
            "ended_as": watcher.events[-1].status,
            "longest_end_after_sigterm_s": max(ends),
            "longest_until_next_event_s": max(resumes),
        }


def rolling_restart(rounds: int = 2, clients: int = 4) -> dict[str, Any]:
    """Two replicas and two workers, each ended by SIGTERM and started again, under load."""
    with (
        tempfile.TemporaryDirectory(prefix="mwfault") as folder,
        database("postgresql", durable=False) as (url, _),
        ServiceProcess(url, Path(folder), "--jobs", "0") as one,
        ServiceProcess(url, Path(folder), "--jobs", "0") as two,
        WorkerCommand(url, Path(folder)) as first,
        WorkerCommand(url, Path(folder)) as second,
    ):
        ends = []
        with HttpLoad([one.address, two.address], clients=clients, pause_s=0.3) as load:
            time.sleep(SETTLE_S)
            for _ in range(rounds):
                for part in (one, first, two, second):
                    ends.append(part.terminate())
                    part.start_again()
                    time.sleep(SETTLE_S)
        tries = load.tries_until_acknowledged
        return {
            "database": "postgresql",
            "fault": "rolling restart",
            "rounds": rounds,
            **jobs_verdict(url, load.acknowledged),
            **clients_verdict(load),
            "needed_one_repetition": tries[ONE_REPETITION],
            "failed_after_one_repetition": load.reads_failed_twice
            + sum(count for tried, count in tries.items() if tried > ONE_REPETITION),
            "longest_end_after_sigterm_s": max(ends),
        }
