"""Job records and events from a row of DBOS: ``WorkflowStatus`` -> ``JobRecord`` and ``JobEvent``.

DBOS's states: ENQUEUED, DELAYED = queued; PENDING = running; SUCCESS = the program ended, its outcome says how; ERROR =
our bug; CANCELLED = cancelled before it ran; MAX_RECOVERY_ATTEMPTS_EXCEEDED = every worker that had it disappeared.

Two things happen outside the program, when no worker holds the job: it is queued, and it ends.  Their events are read
from the row; those between, from the program's stream, whose offsets have no holes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dbos import WorkflowStatus

from api.errors import JobFailure, WorkerLost
from api.jobs.outcome import MOST_ATTEMPTS, Outcome
from api.jobs.waiting import CANCELLED, num_waiting
from api.wire.jobs import ENDED, JobEvent, JobProgress, JobRecord, JobStatus, JobSubject
from api.wire.problem_details import ProblemDetails, problem_details

Written = Sequence[tuple[int, dict[str, Any]]]
"""Offset and value of what a program wrote."""
STREAM = "events"
"""Key of the program's stream of events."""

_STATUSES: dict[str, JobStatus] = {
    "ENQUEUED": "queued",
    "DELAYED": "queued",
    "PENDING": "running",
    "ERROR": "failed",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
}
WAITING = JobProgress(phase="queued")


def job_record(row: WorkflowStatus) -> JobRecord:
    """A job as its row says it stands; the row was read with its output."""
    notes = row.attributes or {}
    outcome = Outcome.model_validate(row.output) if row.status == "SUCCESS" else None
    status: JobStatus = outcome.status if outcome else _STATUSES[row.status]
    progress = notes.get("progress") if status != "queued" else None
    subject = notes.get("subject")
    return JobRecord(
        id=row.workflow_id,
        owner=row.authenticated_user or "",
        problem_id=str(notes["problem_id"]),
        subject=JobSubject.model_validate(subject) if subject else None,
        status=status,
        created_at=_moment(row.created_at) or datetime.now(UTC),
        started_at=_moment(row.dequeued_at),
        finished_at=_moment(row.completed_at) if status in ENDED else None,
        attempts=outcome.attempt if outcome else _attempts(row, notes),
        progress=JobProgress.model_validate(progress) if progress else WAITING,
        cancel_requested=bool(notes.get(CANCELLED, False)) or status == "cancelled",
        num_waiting=num_waiting(notes, row.authenticated_user or ""),
        result_kind=outcome.result_kind if outcome else "none",
        result_plan_id=outcome.plan_id if outcome else None,
        error=outcome.error if outcome else _failure(row),
    )


def job_events(
    record: JobRecord, written: Sequence[tuple[int, dict[str, Any]]], total: int, after: int
) -> list[JobEvent]:
    """Events of a job after ``after``: queued, what its program wrote at its offsets (``total`` of them), ended."""
    events = []
    if after < 1:
        events.append(JobEvent(seq=1, at=record.created_at, status="queued", progress=WAITING))
    events += [JobEvent.model_validate({"seq": offset + 2, **value}) for offset, value in written]
    last = total + 2
    if record.status in ENDED and after < last:
        at = record.finished_at or record.created_at
        events.append(JobEvent(seq=last, at=at, status=record.status, progress=record.progress))
    return events


def _attempts(row: WorkflowStatus, notes: dict[str, Any]) -> int:
    """Attempts of a job without an outcome; the one that finds the budget spent is none."""
    dispatched = row.recovery_attempts or 0
    return min(max(dispatched, int(notes.get("attempt", 0))), MOST_ATTEMPTS)


def _failure(row: WorkflowStatus) -> ProblemDetails | None:
    if row.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        return problem_details(
            WorkerLost(
                f"{MOST_ATTEMPTS} workers disappeared while they had this job",
                where=row.workflow_id,
                hint="look at the workers' logs and memory before you submit it again",
            )
        )
    if row.status == "ERROR":
        return problem_details(
            JobFailure(
                f"the worker failed: {type(row.error).__name__}", where=row.workflow_id, hint="look at the worker's log"
            )
        )
    return None


def _moment(epoch_ms: int | None) -> datetime | None:
    return None if epoch_ms is None else datetime.fromtimestamp(epoch_ms / 1000, UTC)
