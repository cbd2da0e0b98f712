"""Notes beside a job's row while it runs: progress for readers, requests to the worker.

Notes are DBOS's attributes of the job.  Nothing depends on them being written or read at a certain moment, so a
database that is away is passed over; what must not be lost goes through the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbos import DBOSClient
from sqlalchemy.exc import SQLAlchemyError

from api.jobs.system_database import QUEUE


@dataclass(frozen=True, slots=True)
class Note:
    """What a worker wants to know of a job that it runs."""

    cancel_requested: bool
    ours: bool
    dispatched: int
    traceparent: str | None = None
    """The trace of the request that asked for it."""


class JobNotes:
    """Notes of jobs, as one worker sees them."""

    def __init__(self, client: DBOSClient, executor: str) -> None:
        self._client, self._executor = client, executor

    def read(self, job: str) -> Note | None:
        """The job's note; None while the database is away."""
        try:
            rows = self._client.list_workflows(workflow_ids=[job], load_input=False, load_output=False)
        except SQLAlchemyError:
            return None
        if not rows:
            return Note(cancel_requested=True, ours=False, dispatched=0)
        row = rows[0]
        notes = row.attributes or {}
        return Note(
            cancel_requested=bool(notes.get("cancel_requested", False)),
            ours=row.status == "PENDING" and row.executor_id == self._executor,
            dispatched=row.recovery_attempts or 1,
            traceparent=notes.get("traceparent"),
        )

    def write(self, job: str, notes: Mapping[str, Any]) -> None:
        """Change some of a job's notes, if the database is there."""
        try:
            self._client.update_workflow_attributes(job, dict(notes), merge=True)
        except SQLAlchemyError:
            return

    def give_back(self, job: str) -> None:
        """Put a job that this worker will not finish back on the queue, its attempt uncounted.

        While the database is away nothing is done: the job is then found as that of a worker that disappeared.
        """
        try:
            self._client.resume_workflow(job, queue_name=QUEUE)
        except SQLAlchemyError:
            return
