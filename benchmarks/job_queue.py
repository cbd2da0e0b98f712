"""A queue of 10,000 jobs: none may be lost or doubled; the time of a submission is measured.

    python -m benchmarks.job_queue [--database sqlite|postgresql] [--jobs 10000] [--clients 50] [--workers 2] [--write]

``--clients`` threads of one process submit as fast as they can, each waiting for its answer, while nobody works; then
``--workers`` worker processes drain the queue.  The requests ask 200 different small questions: a worker solves each
once and finds it in the store afterwards, so that it is the queue that is measured.  Every job must end with the plan
that a direct search finds for its question, after one dispatch.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from api.jobs.board import PlanRequest
from api.jobs.dbos_board import MAX_PAGE, DbosBoard
from api.wire.jobs import ENDED, JobRecord
from benchmarks.job_report import write_report
from planner.search.find import find_plan
from profiles.errors import MeshwrightError
from tests.job_requests import small_request
from tests.job_workers import WorkerProcess, quick_settings
from tests.postgres_server import PostgresServer, server_programs

QUESTIONS = 200
SUBMIT_P99_TARGET_S = 0.25


@contextmanager
def database(kind: str, *, durable: bool) -> Iterator[tuple[str, PostgresServer | None]]:
    """A fresh database on disk; PostgreSQL with ``fsync`` where durability is what is measured."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="mwjobs", dir=os.environ.get("MESHWRIGHT_BENCHMARK_FOLDER")) as folder:
            yield f"sqlite:///{Path(folder) / 'plans.db'}", None
        return
    programs = server_programs()
    if programs is None:
        raise SystemExit("PostgreSQL server programs are not installed")
    server = PostgresServer(programs, in_memory=not durable, fsync=durable)
    server.start()
    try:
        yield server.create_database("jobs"), server
    finally:
        server.stop()


def requests(count: int) -> list[PlanRequest]:
    """Requests of different content that ask ``QUESTIONS`` different questions."""
    questions = [small_request(4 * (1 + index)) for index in range(min(count, QUESTIONS))]
    return [questions[index % len(questions)].model_copy(update={"seed": index}) for index in range(count)]


@dataclass(slots=True)
class Submitted:
    """What became of every request, in the order asked."""

    latencies_s: list[float]
    jobs: list[str]
    """"" = refused: nothing was promised."""
    refusals: Counter[str]
    wall_s: float = 0.0


def submit_all(board: DbosBoard, asked: list[PlanRequest], clients: int) -> Submitted:
    """Submit from many threads, each waiting for its answer."""
    submitted = Submitted([0.0] * len(asked), [""] * len(asked), Counter())
    places = iter(range(len(asked)))
    lock = threading.Lock()

    def client() -> None:
        while True:
            with lock:
                place = next(places, None)
            if place is None:
                return
            start_s = time.perf_counter()
            try:
                record = board.submit(asked[place], key=f"key-{place}", owner=f"owner-{place % 7}")
            except MeshwrightError as error:
                with lock:
                    submitted.refusals[f"{error.slug}: {error.what}"] += 1
            else:
                submitted.jobs[place] = record.id
            submitted.latencies_s[place] = time.perf_counter() - start_s

    threads = [threading.Thread(target=client) for _ in range(clients)]
    start_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    submitted.wall_s = time.perf_counter() - start_s
    return submitted


def drain(board: DbosBoard, url: str, workers: int, concurrency: int) -> float:
    """Let workers empty the queue; seconds."""
    start_s = time.perf_counter()
    with ExitStack() as stack:
        for _ in range(workers):
            stack.enter_context(WorkerProcess(quick_settings(url, concurrency=concurrency, lease_s=30.0, poll_s=0.05)))
        while True:
            time.sleep(1.0)
            counts = board.counts()
            print(f"  {counts.queued:,} wait, {counts.running} run", end="\r", file=sys.stderr, flush=True)
            if counts.queued == counts.running == 0:
                return time.perf_counter() - start_s


def verdict(board: DbosBoard, asked: list[PlanRequest], submitted: Submitted) -> dict[str, Any]:
    """Lost, doubled and wrong jobs among those that were acknowledged."""
    records: dict[str, JobRecord] = {}
    before: str | None = None
    while True:
        page = board.list_jobs(before=before, limit=MAX_PAGE)
        records |= {record.id: record for record in page}
        if len(page) < MAX_PAGE:
            break
        before = page[-1].id
    plans = {
        request.problem.problem_id: find_plan(request.problem, request.search_options()).plan_id
        for request in asked[:QUESTIONS]
    }
    acknowledged = [(job, request) for job, request in zip(submitted.jobs, asked, strict=True) if job]
    jobs = [job for job, _ in acknowledged]
    right = sum(
        job in records and records[job].result_plan_id == plans[request.problem.problem_id]
        for job, request in acknowledged
    )
    return {
        "asked": len(asked),
        "refused": dict(submitted.refusals),
        "acknowledged": len(jobs),
        "lost": sum(job not in records or records[job].status not in ENDED for job in jobs),
        "rows_without_submission": len(set(records) - set(jobs)),
        "ids_given_twice": len(jobs) - len(set(jobs)),
        "with_the_right_plan": right,
        "statuses": dict(Counter(record.status for record in records.values())),
        "attempts": dict(Counter(str(record.attempts) for record in records.values())),
    }


def measure(kind: str, count: int, clients: int, workers: int, concurrency: int) -> dict[str, Any]:
    """Submit, drain and check, on one kind of database."""
    asked = requests(count)
    with database(kind, durable=True) as (url, _), DbosBoard.open(url) as board:
        before = resource.getrusage(resource.RUSAGE_SELF)
        submitted = submit_all(board, asked, clients)
        after = resource.getrusage(resource.RUSAGE_SELF)
        load = os.getloadavg()[0]
        p50, p99, worst = (float(np.quantile(submitted.latencies_s, share)) for share in (0.5, 0.99, 1.0))
        drain_s = drain(board, url, workers, concurrency)
        return {
            "database": kind,
            "clients": clients,
            "submit_p50_s": p50,
            "submit_p99_s": p99,
            "submit_max_s": worst,
            "submit_p99_target_s": SUBMIT_P99_TARGET_S,
            "submitted_per_s": count / submitted.wall_s,
            "submit_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "load_while_submitting": load,
            "workers": workers,
            "concurrency": concurrency,
            "drained_per_s": count / drain_s,
            **verdict(board, asked, submitted),
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.job_queue", description="A long queue of jobs.")
    parser.add_argument("--database", action="append", choices=["sqlite", "postgresql"])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results")
    chosen = parser.parse_args()
    kinds = chosen.database or ["sqlite", "postgresql"]
    figures = [measure(kind, chosen.jobs, chosen.clients, chosen.workers, chosen.concurrency) for kind in kinds]
    print(json.dumps(figures, indent=2))
    if chosen.write:
        write_report("job-queue", figures)


if __name__ == "__main__":
    main()
