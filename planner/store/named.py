"""Documents under names: models, clusters and profiles, versioned; nothing is overwritten.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select, text

from planner.store.records import NamedRecord
from planner.store.saving import insert_absent, insert_documents
from planner.store.tables import DocumentRow, NamedDocumentRow
from profiles.document import Document
from profiles.errors import Conflict


def current(connection: Connection, kind: str, name: str) -> NamedRecord | None:
    """The newest version under a name, or None."""
    found = history(connection, kind, name, limit=1)
    return found[0] if found else None


def history(connection: Connection, kind: str, name: str, *, limit: int = 100) -> tuple[NamedRecord, ...]:
    """Versions under a name, newest first."""
    query = (
        select(NamedDocumentRow.name, NamedDocumentRow.version, NamedDocumentRow.sha, NamedDocumentRow.created_at)
        .where(NamedDocumentRow.kind == kind, NamedDocumentRow.name == name)
        .order_by(NamedDocumentRow.version.desc())
        .limit(limit)
    )
    return tuple(NamedRecord(*row) for row in connection.execute(query))


def list_current(connection: Connection, kind: str) -> tuple[NamedRecord, ...]:
    """The newest version of every name of a kind, by name."""
    newest = (
        select(NamedDocumentRow.name, func.max(NamedDocumentRow.version).label("version"))
        .where(NamedDocumentRow.kind == kind)
        .group_by(NamedDocumentRow.name)
        .subquery()
    )
    same = (NamedDocumentRow.name == newest.c.name) & (NamedDocumentRow.version == newest.c.version)
    query = (
        select(NamedDocumentRow.name, NamedDocumentRow.version, NamedDocumentRow.sha, NamedDocumentRow.created_at)
        .join(newest, same)
        .where(NamedDocumentRow.kind == kind)
        .order_by(NamedDocumentRow.name)
    )
    return tuple(NamedRecord(*row) for row in connection.execute(query))


def body(connection: Connection, sha: str) -> Any:
    """The plain data of a stored document."""
    found = connection.execute(select(DocumentRow.body).where(DocumentRow.sha == sha)).scalar_one()
    return json.loads(found)


def check_expected(kind: str, name: str, newest: NamedRecord | None, expected: str | None) -> None:
    """Raises Conflict when the name does not mean ``expected`` (an id, None = the name is new)."""
    if (newest.sha if newest else None) != expected:
        raise Conflict(
            f"{kind} {name} is not at the version that this change replaces",
            where="If-Match",
            hint="read it again and repeat the change on what it is now",
        )


def put(
    connection: Connection, kind: str, name: str, document: Document, expected: str | None, now: datetime
) -> NamedRecord:
    """A new version, if ``expected`` (an id, None = the name is new) is what the name means now.

    Raises Conflict when the name means something else by now.
    """
    if connection.dialect.name == "postgresql":
        # Writers of one name take turns; SQLite has one writer at a time anyway.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": f"{kind}/{name}"})
    newest = current(connection, kind, name)
    check_expected(kind, name, newest, expected)
    sha = insert_documents(connection, {kind: document})[kind]
    if newest is not None and newest.sha == sha:
        return newest
    made = NamedRecord(name=name, version=1 if newest is None else newest.version + 1, sha=sha, created_at=now)
    row = {"kind": kind, "name": name, "version": made.version, "sha": sha, "created_at": now}
    insert_absent(connection, NamedDocumentRow, [row])
    return made
