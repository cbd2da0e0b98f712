"""Who waits for a job: equal questions share one, and each caller ends only their own interest in it.

A job's notes say for each caller whether they still wait::

    waits:<digest of the caller>    true from the submission on, false once they have cancelled
    cancel_requested                true once nobody waits

Both are written inside the transaction that decides, so that whoever joins a job and whoever leaves it see each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from api.jobs.system_database import status_table

CANCELLED = "cancel_requested"
ALIVE = ("ENQUEUED", "DELAYED", "PENDING")
_MARK = "waits:"
_DIGITS = 32


def waits(owner: str) -> str:
    """The key of a caller's note; no text of theirs stands in it."""
    return _MARK + hashlib.sha256(owner.encode()).hexdigest()[:_DIGITS]


def is_waiting(notes: Mapping[str, Any], job_owner: str, owner: str) -> bool:
    """Whether ``owner`` waits for a job; the first who asked for it does also where an older version noted nothing."""
    return bool(notes.get(waits(owner), owner == job_owner))


def num_waiting(notes: Mapping[str, Any], job_owner: str) -> int:
    """Callers who wait for a job."""
    said = {key: bool(value) for key, value in notes.items() if key.startswith(_MARK)}
    return sum(({waits(job_owner): True} | said).values())


def join(connection: Connection, job: str, owner: str) -> bool:
    """One more waits; False where the job has ended or is being ended."""
    return _note(connection, job, {waits(owner): True})


def leave(connection: Connection, job: str, owner: str) -> bool:
    """``owner`` waits no longer; whether the job is to end, because nobody does."""
    if not _note(connection, job, {waits(owner): False}):
        return False
    row = connection.execute(
        text(
            f"SELECT attributes, authenticated_user FROM {status_table(connection.engine)} WHERE workflow_uuid = :job"
        ),
        {"job": job},
    ).one()
    return num_waiting(parsed(row[0]), row[1] or "") == 0 and _note(connection, job, {CANCELLED: True})


def end(connection: Connection, job: str) -> bool:
    """The job is to end, whoever waits; False where that is so already."""
    return _note(connection, job, {CANCELLED: True})


def parsed(notes: Any) -> dict[str, Any]:
    """Notes as PostgreSQL (parsed) or SQLite (text) give them."""
    data: dict[str, Any] = json.loads(notes) if isinstance(notes, str | bytes) else notes
    return data


def _note(connection: Connection, job: str, notes: Mapping[str, bool]) -> bool:
    """Add notes to a job that lives and is not being ended; False where it is none.

    The row stays locked until the transaction ends, so that the next one reads what this one wrote.
    """
    if connection.engine.dialect.name == "sqlite":
        added, ending = "json_patch(attributes, :notes)", f"json_extract(attributes, '$.{CANCELLED}')"
    else:
        added, ending = "attributes || CAST(:notes AS jsonb)", f"CAST(attributes ->> '{CANCELLED}' AS boolean)"
    states = ", ".join(f"'{state}'" for state in ALIVE)
    changed = connection.execute(
        text(
            f"UPDATE {status_table(connection.engine)} SET attributes = {added}"
            f" WHERE workflow_uuid = :job AND status IN ({states}) AND NOT COALESCE({ending}, false)"
        ),
        {"job": job, "notes": json.dumps(notes)},
    )
    return bool(changed.rowcount)
