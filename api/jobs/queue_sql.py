"""SQL reads of DBOS's table of workflow states: counts and pages, which its client lacks.

Reads only; the columns are those that DBOS documents (https://docs.dbos.dev/explanations/system-tables).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from api.jobs.identity import CONTENT_DIGITS
from api.jobs.system_database import PROGRAM, QUEUE, WORKERS, status_table

_STATES = {
    "queued": "status IN ('ENQUEUED', 'DELAYED')",
    "running": "status = 'PENDING'",
    # Failed and cancelled jobs may have ended inside the program; which, only its outcome says.
    "succeeded": "status = 'SUCCESS'",
    "failed": "status IN ('SUCCESS', 'ERROR', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')",
    "cancelled": "status IN ('SUCCESS', 'CANCELLED')",
}


_ENDED = "('SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')"


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs waiting and running."""

    queued: int
    running: int
    queued_of_owner: int
    oldest_queued_s: float


def read_load(connection: Connection, owner: str | None = None) -> Load:
    """Counts of the whole queue, and of one owner's waiting jobs."""
    row = connection.execute(
        text(
            "SELECT count(CASE WHEN status = 'ENQUEUED' THEN 1 END),"
            " count(CASE WHEN status = 'PENDING' THEN 1 END),"
            " count(CASE WHEN status = 'ENQUEUED' AND authenticated_user = :owner THEN 1 END),"
            " min(CASE WHEN status = 'ENQUEUED' THEN created_at END)"
            f" FROM {status_table(connection.engine)} WHERE queue_name = :queue AND status IN ('ENQUEUED', 'PENDING')"
        ),
        {"queue": QUEUE, "owner": owner},
    ).one()
    oldest_s = 0.0 if row[3] is None else max(0.0, time.time() - int(row[3]) / 1000)
    return Load(queued=int(row[0]), running=int(row[1]), queued_of_owner=int(row[2]), oldest_queued_s=oldest_s)


def read_workers(connection: Connection) -> dict[str, int]:
    """Workers that show themselves, and how many of the writes of each were refused since it started."""
    rows = connection.execute(
        text(f"SELECT attributes FROM {status_table(connection.engine)} WHERE queue_name = :queue"), {"queue": WORKERS}
    )
    notes = [json.loads(row[0]) if isinstance(row[0], str | bytes) else row[0] for row in rows]
    return {str(each["executor"]): int(each.get("refused", 0)) for each in notes}


def read_old(connection: Connection, before: datetime, limit: int) -> list[str]:
    """Jobs that ended before ``before`` and that no younger job of the same content follows, oldest first.

    A content is forgotten as a whole, because its jobs are counted (``api.jobs.identity``).
    """
    old = f"(status IN {_ENDED} AND COALESCE(completed_at, updated_at) < :before)"
    content = f"substr(workflow_uuid, 1, {CONTENT_DIGITS})"
    table = status_table(connection.engine)
    rows = connection.execute(
        text(
            f"SELECT workflow_uuid FROM {table} WHERE name = :program AND {old} AND {content} NOT IN"
            f" (SELECT {content} FROM {table} WHERE name = :program AND NOT {old}) ORDER BY created_at LIMIT :limit"
        ),
        {"program": PROGRAM, "before": int(before.timestamp() * 1000), "limit": limit},
    )
    return [str(row[0]) for row in rows]


def read_of_problem(connection: Connection, problem_id: str) -> list[str]:
    """Ended jobs of a question; none while another job of the same content waits or runs."""
    table, content = status_table(connection.engine), f"substr(workflow_uuid, 1, {CONTENT_DIGITS})"
    sqlite = connection.engine.dialect.name == "sqlite"
    said = "json_extract(attributes, '$.problem_id')" if sqlite else "attributes ->> 'problem_id'"
    rows = connection.execute(
        text(
            f"SELECT workflow_uuid FROM {table} WHERE name = :program AND {said} = :problem AND {content} NOT IN"
            f" (SELECT {content} FROM {table} WHERE name = :program AND status NOT IN {_ENDED})"
        ),
        {"program": PROGRAM, "problem": problem_id},
    )
    return [str(row[0]) for row in rows]


def read_old_keys(connection: Connection, queue: str, before: datetime, limit: int) -> list[str]:
    """Keys of ``queue`` that were taken before ``before``, oldest first."""
    table = status_table(connection.engine)
    rows = connection.execute(
        text(
            f"SELECT workflow_uuid FROM {table} WHERE queue_name = :queue AND created_at < :before"
            " ORDER BY created_at LIMIT :limit"
        ),
        {"queue": queue, "before": int(before.timestamp() * 1000), "limit": limit},
    )
    return [str(row[0]) for row in rows]


def read_page(
    connection: Connection, *, owner: str | None, status: str | None, before: tuple[int, str] | None, limit: int
) -> list[tuple[int, str]]:
    """(created_at, id) of jobs that may have ``status``, newest first; ``before``: the last one already seen."""
    conditions, values = ["name = :program"], {"program": PROGRAM, "limit": limit}
    if owner is not None:
        conditions.append("authenticated_user = :owner")
        values["owner"] = owner
    if status is not None:
        conditions.append(_STATES[status])
    if before is not None:
        conditions.append("(created_at < :at OR (created_at = :at AND workflow_uuid < :id))")
        values |= {"at": before[0], "id": before[1]}
    rows = connection.execute(
        text(
            f"SELECT created_at, workflow_uuid FROM {status_table(connection.engine)} WHERE {' AND '.join(conditions)}"
            " ORDER BY created_at DESC, workflow_uuid DESC LIMIT :limit"
        ),
        values,
    )
    return [(int(row[0]), str(row[1])) for row in rows]
