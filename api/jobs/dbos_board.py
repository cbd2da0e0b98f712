"""The ``JobBoard`` on DBOS Transact, on SQLite or PostgreSQL: jobs are submitted, watched and cancelled.

DBOS's system database is the only truth; the board holds no state.  A job is a durable workflow on a queue, its id is
made of its content (``api.jobs.identity``), and one transaction makes it durable (``api.jobs.submission``).

Cancelling ends one caller's interest; the job ends with the last (``api.jobs.waiting``).  A waiting job is then taken
off the queue.  A running one gets a note on its row; its worker reads it within a
second, ends the search and keeps the best plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self

from dbos import WorkflowStatus
from dbos import error as dbos_error
from sqlalchemy import Connection, Engine

from api.jobs.board import PlanRequest
from api.jobs.group_commit import GroupCommit
from api.jobs.identity import generation_of
from api.jobs.queue_gate import QueueGate, QueueLimits
from api.jobs.queue_sql import read_load, read_of_problem, read_old, read_old_keys, read_page, read_workers
from api.jobs.records import STREAM, job_events, job_record
from api.jobs.submission import KEYS, Submission
from api.jobs.system_database import (
    PROGRAM,
    make_client,
    make_system_engine,
    prepare_system_database,
    system_database_url,
)
from api.jobs.waiting import end, is_waiting, leave
from api.wire.jobs import ENDED, JobEvent, JobRecord, JobStatus, QueueCounts
from planner.store import software_signature
from planner.store.errors import StoreReadOnly
from planner.store.faults import translated
from profiles.errors import DocumentInvalid, NotFound

MAX_PAGE = 1000
MOST_AT_ONCE = 200
DEFAULT_LIMITS = QueueLimits()


class DbosBoard:
    """The ``JobBoard`` of a plan store."""

    def __init__(self, engine: Engine, url: str, limits: QueueLimits = DEFAULT_LIMITS) -> None:
        self._engine, self._url, self._gate = engine, url, QueueGate(limits)
        self._client = make_client(engine)
        self._commits = GroupCommit(engine)

    @classmethod
    def open(cls, store_url: str | None, limits: QueueLimits = DEFAULT_LIMITS) -> Self:
        """The board next to the plan store at ``store_url``; creates its tables.  Raises StoreError."""
        url = system_database_url(store_url)
        prepare_system_database(url)
        # Hashes the sources once; fifty first submissions at once would do it fifty times.
        software_signature()
        return cls(make_system_engine(url), url, limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._commits.close()
        self._client.destroy()
        self._engine.dispose()

    def submit(self, request: PlanRequest, *, key: str | None, owner: str) -> JobRecord:
        """The job for ``request``, on disk on return.  Raises KeyReused, QueueFull, StoreError."""
        submission = Submission(request, key, owner, self._gate)
        try:
            with translated(self._url):
                placed = self._commits.run(lambda connection: submission.place(connection, self._client, self.get))
                return self.get(placed) if isinstance(placed, str) else placed
        except StoreReadOnly:
            # As in planner.store.engine: SQLite would keep to reading.
            self._engine.dispose()
            raise

    def get(self, job_id: str) -> JobRecord:
        """The job as it stands.  Raises NotFound, StoreError."""
        with translated(self._url):
            return job_record(self._known(job_id))

    def get_many(self, job_ids: Sequence[str]) -> tuple[JobRecord, ...]:
        """Those of these jobs that are there, in any order."""
        with translated(self._url):
            return tuple(record for portion in _portions(job_ids) for record in self._records(portion))

    def list_jobs(
        self, *, owner: str | None = None, status: JobStatus | None = None, before: str | None = None, limit: int = 50
    ) -> tuple[JobRecord, ...]:
        """Jobs, newest first.  Raises NotFound for an unknown ``before``."""
        if not 1 <= limit <= MAX_PAGE:
            raise DocumentInvalid(f"a page has 1 to {MAX_PAGE} jobs, not {limit}", where="limit")
        found: list[JobRecord] = []
        with translated(self._url):
            last = None if before is None else self._position(before)
            while len(found) < limit:
                with self._engine.connect() as connection:
                    page = read_page(connection, owner=owner, status=status, before=last, limit=limit)
                records = self._records([job for _, job in page])
                found += [record for record in records if status is None or record.status == status]
                if len(page) < limit:
                    break
                last = page[-1]
        return tuple(found[:limit])

    def is_waiting(self, job_id: str, owner: str) -> bool:
        """Whether ``owner`` waits for the job.  Raises NotFound."""
        with translated(self._url):
            row = self._known(job_id)
        return is_waiting(row.attributes or {}, row.authenticated_user or "", owner)

    def cancel(self, job_id: str, owner: str | None = None) -> JobRecord:
        """End an interest in the job, and the job when it was the last one; harmless for one that has ended."""
        with translated(self._url):
            record = job_record(self._known(job_id))
            if record.status in ENDED:
                return record
            if self._commits.run(partial(_given_up, job_id, owner)) and record.status == "queued":
                self._client.cancel_workflow(job_id)
            return self.get(job_id)

    def cancel_many(self, job_ids: Sequence[str], owner: str | None = None) -> tuple[JobRecord, ...]:
        """The same for many; those that nobody waits for any more leave the queue in one statement."""
        states = {record.id: record.status for record in self.get_many(job_ids)}
        open_jobs = [job for job, status in states.items() if status not in ENDED]
        with translated(self._url):
            for portion in _portions(open_jobs):
                given_up = self._commits.run(partial(_all_given_up, portion, owner))
                waiting = [job for job in given_up if states[job] == "queued"]
                if waiting:
                    self._client.cancel_workflows(waiting)
        return self.get_many(list(states))

    def events(self, job_id: str, after: int = 0) -> tuple[JobEvent, ...]:
        """What happened after event ``after``, in order, up to now."""
        with translated(self._url):
            # The record first: when it has ended, nothing is written to the stream any more.
            record = job_record(self._known(job_id))
            # Starting with the event that was seen last tells how many there are at least.
            start = max(after - 2, 0)
            values = self._written(job_id, start)
            if start > 0 and not values:
                return ()
            total = start + len(values)
            new = [(start + index, value) for index, value in enumerate(values) if start + index + 2 > after]
            return tuple(job_events(record, new, total, after))

    def forget(self, before: datetime, most: int) -> int:
        """Remove at most so many jobs that ended before ``before``, with their events, and keys as old."""
        with translated(self._url):
            with self._engine.connect() as connection:
                jobs = read_old(connection, before, most)
            self._delete(jobs)
            while keys := self._old_keys(before, most):
                self._delete(keys)
        return len(jobs)

    def forget_problem(self, problem_id: str) -> int:
        """Remove the ended jobs of a question, unless one is under way: jobs of one content are counted."""
        with translated(self._url):
            with self._engine.connect() as connection:
                jobs = read_of_problem(connection, problem_id)
            self._delete(jobs)
        return len(jobs)

    def _old_keys(self, before: datetime, most: int) -> list[str]:
        with self._engine.connect() as connection:
            return read_old_keys(connection, KEYS, before, most)

    def _delete(self, rows: list[str]) -> None:
        if rows:
            self._client.delete_workflows(rows)

    def counts(self) -> QueueCounts:
        """How many jobs wait and run."""
        with translated(self._url), self._engine.connect() as connection:
            load, workers = read_load(connection), read_workers(connection)
        return QueueCounts(
            queued=load.queued, running=load.running, oldest_queued_s=load.oldest_queued_s, refused_of_worker=workers
        )

    def _row(self, workflow_id: str) -> WorkflowStatus | None:
        rows = self._client.list_workflows(workflow_ids=[workflow_id], load_input=False)
        return rows[0] if rows else None

    def _known(self, job: str) -> WorkflowStatus:
        row = self._row(job) if generation_of(job) else None
        if row is None or row.name != PROGRAM:
            raise NotFound("there is no such job", where=job, hint="a job is kept until the retention time has passed")
        return row

    def _records(self, jobs: list[str]) -> list[JobRecord]:
        if not jobs:
            return []
        rows = {row.workflow_id: row for row in self._client.list_workflows(workflow_ids=jobs, load_input=False)}
        return [job_record(rows[job]) for job in jobs if job in rows]

    def _position(self, job: str) -> tuple[int, str]:
        return int(self._known(job).created_at or 0), job

    def _written(self, job: str, offset: int) -> list[dict[str, Any]]:
        """What the program has written to its stream, from ``offset`` up to now."""
        values: list[dict[str, Any]] = []
        try:
            for value in self._client.read_stream(job, STREAM, offset=offset, timeout_seconds=0):
                values.append(value)
        except dbos_error.DBOSStreamTimeoutError:
            return values
        except dbos_error.DBOSException:
            # The job's row is gone since it was read: retention removed it.
            return []
        return values


def _given_up(job: str, owner: str | None, connection: Connection) -> bool:
    """Whether the job is to end now: ``owner`` was the last who waits, or it ends for everybody (None)."""
    return end(connection, job) if owner is None else leave(connection, job, owner)


def _all_given_up(jobs: Sequence[str], owner: str | None, connection: Connection) -> list[str]:
    return [job for job in jobs if _given_up(job, owner, connection)]


def _portions(job_ids: Sequence[str]) -> Iterator[list[str]]:
    return (list(job_ids[start : start + MOST_AT_ONCE]) for start in range(0, len(job_ids), MOST_AT_ONCE))
