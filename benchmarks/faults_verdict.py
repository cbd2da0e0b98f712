"""What became of every job that clients were promised, read from the database once the fault is over.

A job is lost when it never ends, doubled when one question has two jobs, wrong when it has not the plan of its own
question; its events must have no holes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from api.jobs.dbos_board import MAX_PAGE, DbosBoard
from api.wire.jobs import ENDED, JobRecord
from planner.store import open_store
from tests.http_load import HttpLoad

END_S = 300.0


def jobs_verdict(url: str, acknowledged: Iterable[str], timeout_s: float = END_S) -> dict[str, Any]:
    """Wait for the end of every job, then count."""
    promised = set(acknowledged)
    start_s = time.monotonic()
    with DbosBoard.open(url) as board:
        while (counts := board.counts()).queued + counts.running and time.monotonic() - start_s < timeout_s:
            time.sleep(0.1)
        all_ended_s = time.monotonic() - start_s
        records = {record.id: record for record in _all_jobs(board)}
        events = [board.events(job) for job in records]
    with open_store(url) as store:
        wrong = sum(
            record.status == "succeeded"
            and (
                record.result_plan_id is None
                or store.get_plan(record.result_plan_id).problem.problem_id != record.problem_id
            )
            for record in records.values()
        )
    return {
        "acknowledged": len(promised),
        "lost": sum(job not in records or records[job].status not in ENDED for job in promised),
        "stored_but_not_acknowledged": len(set(records) - promised),
        "doubled": len(records) - len({record.problem_id for record in records.values()}),
        "wrong_plans": wrong,
        "events_with_holes": sum([each.seq for each in told] != list(range(1, len(told) + 1)) for told in events),
        "statuses": dict(Counter(record.status for record in records.values())),
        "attempts": dict(sorted(Counter(str(record.attempts) for record in records.values()).items())),
        "all_ended_s": all_ended_s,
    }


def clients_verdict(load: HttpLoad) -> dict[str, Any]:
    """What the clients saw."""
    return {
        "answers": load.statuses(),
        "http_500": load.count(500),
        "answers_at_fault": load.faults(),
        "slowest_answer_s": max((answer.wall_s for answer in load.answers), default=0.0),
    }


def first_end_s(url: str, jobs: Iterable[str], moment_s: float) -> float:
    """Seconds from a moment of the wall clock to the next end of a job; infinite when there is none."""
    with DbosBoard.open(url) as board:
        ends = [record.finished_at.timestamp() for record in map(board.get, jobs) if record.finished_at is not None]
    return min((end - moment_s for end in ends if end >= moment_s), default=float("inf"))


def _all_jobs(board: DbosBoard) -> list[JobRecord]:
    found: list[JobRecord] = []
    while True:
        page = board.list_jobs(before=found[-1].id if found else None, limit=MAX_PAGE)
        found += page
        if len(page) < MAX_PAGE:
            return found
