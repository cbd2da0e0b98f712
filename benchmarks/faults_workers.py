"""Workers are killed, and stopped for longer than their lease, in the middle of solves.

kill    ``kill -9`` at a random moment of a solve, 100 times; three workers at a time, which are replaced
stop    SIGSTOP of a worker past its lease, then SIGCONT, 20 times

Jobs are real plans of small questions, held for a second so that faults hit them in the middle; new ones are
submitted while old ones run, as long as faults are to come.  At the end every submitted job must have ended, each
with one plan, which the store has; a job that three workers died with may have failed, saying so.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from sqlalchemy import text

from api.jobs.dbos_board import DbosBoard
from api.jobs.outcome import MOST_ATTEMPTS
from api.jobs.system_database import make_system_engine, status_table, system_database_url
from api.wire.jobs import ENDED, JobRecord
from benchmarks.job_queue import database
from planner.store import open_store
from planner.store.errors import StoreError
from tests.faulty_solver import PAUSE
from tests.job_requests import faulty_request
from tests.job_workers import WorkerProcess, quick_settings

WORKERS = 3
LEASE_S = 4.0
WAITING = 6
"""Jobs that are kept waiting or running while faults are to come."""
END_S = 600.0


class Submitter:
    """Keeps the queue from running dry; remembers what was acknowledged."""

    def __init__(self, board: DbosBoard) -> None:
        self._board = board
        self.acknowledged: list[str] = []
        self.refused: Counter[str] = Counter()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._number = 0

    def __enter__(self) -> Submitter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.1):
            try:
                counts = self._board.counts()
                if counts.queued + counts.running < WAITING:
                    self._number += 1
                    request = faulty_request(PAUSE, 4 * self._number)
                    self.acknowledged.append(self._board.submit(request, key=None, owner="o").id)
            except StoreError as error:
                self.refused[type(error).__name__] += 1


def settings(url: str) -> Any:
    """A worker as ``serve`` starts it, but with a short lease, so that a fault takes seconds."""
    return quick_settings(url, concurrency=2, lease_s=LEASE_S, heartbeat_s=0.8, solver_module="tests.faulty_solver")


def kill(url: str, board: DbosBoard, times: int) -> None:
    """Kill a worker that is solving, at a random moment of the solve, and start another."""
    draw = random.Random(1)
    with ExitStack() as stack:
        workers = [stack.enter_context(WorkerProcess(settings(url))) for _ in range(WORKERS)]
        for number in range(times):
            victim = solving(url, board, workers)
            time.sleep(draw.uniform(0.0, 1.0))
            workers[victim].kill()
            workers[victim] = stack.enter_context(WorkerProcess(settings(url)))
            tell(f"{number + 1} of {times} killed")


def solving(url: str, board: DbosBoard, workers: list[WorkerProcess]) -> int:
    """A worker whose job's search has begun, once there is one; no job's third worker, which would end the job."""
    engine = make_system_engine(system_database_url(url), 1)
    try:
        while True:
            with engine.connect() as connection:
                rows = connection.execute(
                    text(f"SELECT executor_id, workflow_uuid FROM {status_table(engine)} WHERE status = 'PENDING'")
                ).all()
            for executor, job in rows:
                # The name of an executor is host, process id, something random.
                process = int(executor.rsplit("-", 2)[1])
                for index, worker in enumerate(workers):
                    begun = worker.process.pid == process and worker.process.poll() is None
                    events = board.events(job) if begun else ()
                    attempts = sum(event.progress.phase == "starting" for event in events)
                    if events and events[-1].progress.phase == "searching" and attempts < MOST_ATTEMPTS:
                        return index
            time.sleep(0.1)
    finally:
        engine.dispose()


def stop(url: str, board: DbosBoard, times: int) -> None:
    """Stop a worker that is solving for longer than its lease, while another goes on."""
    draw = random.Random(2)
    with WorkerProcess(settings(url)) as first, WorkerProcess(settings(url)) as second:
        for number in range(times):
            victim = (first, second)[solving(url, board, [first, second])]
            time.sleep(draw.uniform(0.0, 0.5))
            victim.stop()
            time.sleep(LEASE_S + 3.0)
            victim.go_on()
            time.sleep(2.0)
            tell(f"{number + 1} of {times} stopped")


FAULTS: dict[str, Callable[[str, DbosBoard, int], None]] = {"kill": kill, "stop": stop}


def measure(kind: str, fault: str, times: int) -> dict[str, Any]:
    """One kind of fault on one kind of database."""
    with database(kind, durable=False) as (url, _), DbosBoard.open(url) as board:
        with Submitter(board) as submitter:
            FAULTS[fault](url, board, times)
            refused = sum(board.counts().refused_of_worker.values())
        with WorkerProcess(settings(url)), WorkerProcess(settings(url)):
            wait(lambda: all(board.get(job).status in ENDED for job in submitter.acknowledged), "all end", END_S)
        records = [board.get(job) for job in submitter.acknowledged]
        events = [board.events(record.id) for record in records]
        with open_store(url) as store:
            stored = {plan.plan_id for plan in store.list_plans(limit=1000)}
        return {
            "database": kind,
            "fault": fault,
            "times": times,
            "lease_s": LEASE_S,
            "acknowledged": len(records),
            "lost": sum(record.status not in ENDED for record in records),
            "statuses": dict(Counter(record.status for record in records)),
            "failures": dict(Counter(record.error.slug for record in records if record.error)),
            "attempts": dict(sorted(Counter(str(record.attempts) for record in records).items())),
            "plans_missing": sum(not stored >= plan_of(record) for record in records),
            "plans_of_several_jobs": len(records) - len({record.problem_id for record in records}),
            "plans_without_a_job": len(stored - set().union(*map(plan_of, records))),
            "events_with_holes": sum([event.seq for event in each] != list(range(1, len(each) + 1)) for each in events),
            "longest_silence_before_a_rerun_s": max((silence_s(each) for each in events), default=0.0),
            "submissions_refused": dict(submitter.refused),
            "stale_writes_refused": refused,
        }


def plan_of(record: JobRecord) -> set[str]:
    """The plan of a job, if any."""
    return {record.result_plan_id} if record.result_plan_id else set()


def silence_s(events: tuple[Any, ...]) -> float:
    """Longest time from the last sign of one attempt to the start of the next: lease, watch and waiting in line."""
    starts = [index for index, event in enumerate(events) if event.progress.phase == "starting"]
    gaps = [(events[index].at - events[index - 1].at).total_seconds() for index in starts[1:]]
    return max(gaps, default=0.0)


def wait(condition: Callable[[], bool], what: str, timeout_s: float = 180.0) -> None:
    """Poll until ``condition``."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.2)


def tell(text: str) -> None:
    """Progress, on a terminal."""
    print(f"  {text}", end="\r", file=sys.stderr, flush=True)
