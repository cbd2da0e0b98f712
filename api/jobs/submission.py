"""A submission becomes a row in one transaction: look, refuse or insert.

Read first: the key's row, the jobs of this content, the length of the queue.  Then insert what is missing: the key's
row and the job's.  The first insert of an id wins; whoever comes second finds it and gets the same job.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dbos import DBOSClient
from sqlalchemy import Connection, bindparam, text

from api.errors import KeyReused
from api.jobs.board import PlanRequest
from api.jobs.identity import content_of, generation_of, job_id, key_id
from api.jobs.queue_gate import QueueGate
from api.jobs.records import WAITING
from api.jobs.system_database import APPLICATION_VERSION, PROGRAM, QUEUE, status_table
from api.jobs.waiting import ALIVE, CANCELLED, is_waiting, join, parsed, waits
from api.telemetry.tracing import traceparent
from api.wire.jobs import JobRecord, JobSubject

KEYS = "meshwright-keys"
"""Queue of the keys' rows; no worker serves it, so they stay as they are."""
GENERATIONS = 8
"""Jobs of one content that are looked at in one read."""
_MIDDLE_URGENCY = 101
"""DBOS serves small numbers first and takes none below 1 (``dbos._context.MinPriority``): priority 100 -> 1,
-100 -> 201."""


class Submission:
    """One request on its way to a row; everything that needs no database is computed when it is made."""

    def __init__(self, request: PlanRequest, key: str | None, owner: str, gate: QueueGate) -> None:
        self.owner, self.gate, self.urgency = owner, gate, _MIDDLE_URGENCY - request.priority
        self.body = request.canonical_json()
        self.problem_id = request.problem.problem_id
        self.subject = JobSubject.of(request.problem)
        self.content = content_of(request)
        self.key = None if key is None else key_id(owner, key)
        # Here, in the context of who asks: the transaction may run in another thread.
        self.traceparent = traceparent()

    def place(self, connection: Connection, client: DBOSClient, read: Callable[[str], JobRecord]) -> JobRecord | str:
        """The record of a new job, or the id of the job that is there.  Raises KeyReused, QueueFull.

        ``read`` gives the record of a job that has ended.
        """
        rows = self._look(connection)
        if self.key in rows:
            job = self._kept(rows[self.key][1])
            if job in rows or self._status(connection, job):
                # One that has ended, or is being ended, stays what became of the key.
                self._joins(connection, job)
                return job
        else:
            job, there = self._newest(connection, rows, read)
            if there:
                if self.key is not None:
                    self._insert_key(connection, client, job)
                return self._first(connection, job)
        self.gate.admit(connection, self.owner)
        if self.key is not None and self.key not in rows:
            self._insert_key(connection, client, job)
            first = self._first(connection, job)
            if first != job and self._status(connection, first):
                return first
            job = first
        self._insert_job(connection, client, job)
        return self._waiting(connection, job)

    def _look(self, connection: Connection, first: int = 1) -> dict[str | None, tuple[str, Any]]:
        """Rows of the key and of the first jobs of this content: id -> (status, notes)."""
        wanted = [job_id(self.content, first + step) for step in range(GENERATIONS)]
        wanted += [] if self.key is None else [self.key]
        found = connection.execute(
            text(
                f"SELECT workflow_uuid, status, attributes FROM {status_table(connection.engine)}"
                " WHERE workflow_uuid IN :wanted"
            ).bindparams(bindparam("wanted", expanding=True)),
            {"wanted": wanted},
        )
        return {row[0]: (row[1], row[2]) for row in found}

    def _newest(
        self, connection: Connection, rows: dict[str | None, tuple[str, Any]], read: Callable[[str], JobRecord]
    ) -> tuple[str, bool]:
        """The newest job of this content while it can still answer, else the id of the next one."""
        first, jobs = 1, [job for job in rows if job is not None and job != self.key]
        while len(jobs) == GENERATIONS:
            # All of one read's generations have passed; the newest may be in the next read.
            first += GENERATIONS
            more = [job for job in self._look(connection, first) if job is not None and job != self.key]
            if not more:
                break
            jobs = more
        if not jobs:
            return job_id(self.content, 1), False
        newest = max(jobs, key=generation_of)
        if self._joins(connection, newest) or read(newest).status == "succeeded":
            return newest, True
        return job_id(self.content, generation_of(newest) + 1), False

    def _joins(self, connection: Connection, job: str) -> bool:
        """Wait for a job like those who asked before; False where it has ended or is being ended."""
        row = connection.execute(
            text(
                f"SELECT status, attributes, authenticated_user FROM {status_table(connection.engine)}"
                " WHERE workflow_uuid = :job"
            ),
            {"job": job},
        ).one()
        notes = parsed(row[1])
        if row[0] not in ALIVE or notes.get(CANCELLED):
            return False
        return is_waiting(notes, row[2] or "", self.owner) or join(connection, job, self.owner)

    def _kept(self, notes: Any) -> str:
        """The job that the key got.  Raises KeyReused."""
        data = parsed(notes)
        if data["content"] != self.content:
            raise KeyReused(
                "this key belongs to another request",
                where="Idempotency-Key",
                hint="use a new key for every new request, and the same one only to repeat it",
            )
        return str(data["job"])

    def _first(self, connection: Connection, job: str) -> str:
        """The job that the key got from whoever came first; ``job`` without a key."""
        if self.key is None:
            return job
        notes = connection.execute(
            text(f"SELECT attributes FROM {status_table(connection.engine)} WHERE workflow_uuid = :key"),
            {"key": self.key},
        ).scalar_one()
        return self._kept(notes)

    def _status(self, connection: Connection, job: str) -> str | None:
        status: str | None = connection.execute(
            text(f"SELECT status FROM {status_table(connection.engine)} WHERE workflow_uuid = :job"), {"job": job}
        ).scalar()
        return status

    def _insert_key(self, connection: Connection, client: DBOSClient, job: str) -> None:
        client.enqueue_in_transaction(
            connection,
            {
                "queue_name": KEYS,
                "workflow_name": "key",
                "workflow_id": str(self.key),
                "authenticated_user": self.owner,
                "attributes": {"content": self.content, "job": job},
            },
        )

    def _insert_job(self, connection: Connection, client: DBOSClient, job: str) -> None:
        client.enqueue_in_transaction(
            connection,
            {
                "queue_name": QUEUE,
                "workflow_name": PROGRAM,
                "workflow_id": job,
                "app_version": APPLICATION_VERSION,
                "authenticated_user": self.owner,
                "priority": self.urgency,
                "attributes": {
                    "problem_id": self.problem_id,
                    "subject": self.subject.model_dump(mode="json"),
                    "traceparent": self.traceparent,
                    waits(self.owner): True,
                },
            },
            self.body,
        )

    def _waiting(self, connection: Connection, job: str) -> JobRecord | str:
        """The record of a job that was just inserted; its id when somebody else inserted it, and it may be further."""
        row = connection.execute(
            text(
                f"SELECT created_at, status, authenticated_user FROM {status_table(connection.engine)}"
                " WHERE workflow_uuid = :job"
            ),
            {"job": job},
        ).one()
        if row[1] != "ENQUEUED":
            return job
        return JobRecord(
            id=job,
            owner=row[2] or "",
            problem_id=self.problem_id,
            subject=self.subject,
            status="queued",
            created_at=datetime.fromtimestamp(int(row[0]) / 1000, UTC),
            progress=WAITING,
        )
