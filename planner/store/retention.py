"""The removal of old rows: in small portions, by one process at a time.

On PostgreSQL several services share a database: the one that gets the advisory lock removes, the others go on with
their work.  On SQLite, removing twice at the same time removes nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Engine, delete, or_, select, text, tuple_

from planner.store.engine import reading, writing
from planner.store.removal import forget_documents
from planner.store.saving import hold_documents
from planner.store.tables import ApiKeyRow, AuditRow, IdempotencyKeyRow, SweepCellRow, SweepRow

# Any constant: who wants to remove takes it.
_REMOVAL_LOCK = 0x6D657370


class Retention:
    """Removes what is older than its time from the service's tables."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else is at it; nobody else will be until the block ends.  Raises StoreError."""
        if self._engine.dialect.name != "postgresql":
            yield True
            return
        with reading(self._engine) as connection:
            got = connection.execute(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _REMOVAL_LOCK}).scalar()
            yield bool(got)

    def forget_keys(self, before: datetime, most: int) -> int:
        """Forget at most so many idempotency keys, answered and abandoned ones, older than ``before``; how many."""
        here = (IdempotencyKeyRow.owner, IdempotencyKeyRow.key)
        old = select(*here).where(IdempotencyKeyRow.created_at < before).limit(most)
        with writing(self._engine) as connection:
            return connection.execute(delete(IdempotencyKeyRow).where(tuple_(*here).in_(old))).rowcount

    def forget_audit(self, before: datetime, most: int) -> int:
        """Remove at most so many audit events older than ``before``; how many."""
        old = select(AuditRow.seq).where(AuditRow.at < before).limit(most)
        with writing(self._engine) as connection:
            return connection.execute(delete(AuditRow).where(AuditRow.seq.in_(old))).rowcount

    def forget_sweeps(self, before: datetime, most: int) -> int:
        """Remove at most so many sweeps that ended before ``before``, with their cells; how many.  Plans stay."""
        old = select(SweepRow.sweep_id, SweepRow.document_sha).where(SweepRow.ended_at < before).limit(most)
        with writing(self._engine) as connection:
            hold_documents(connection, alone=True)
            gone = connection.execute(old).all()
            ids, documents = [row.sweep_id for row in gone], {row.document_sha for row in gone}
            connection.execute(delete(SweepCellRow).where(SweepCellRow.sweep_id.in_(ids)))
            connection.execute(delete(SweepRow).where(SweepRow.sweep_id.in_(ids)))
            # Other releases of the software may have asked the same sweep: its document is theirs too.
            forget_documents(connection, documents)
        return len(gone)

    def forget_api_keys(self, before: datetime, most: int) -> int:
        """Remove at most so many API keys that expired or were revoked before ``before``; how many."""
        ended = or_(ApiKeyRow.expires_at < before, ApiKeyRow.revoked_at < before)
        old = select(ApiKeyRow.prefix).where(ended).limit(most)
        with writing(self._engine) as connection:
            return connection.execute(delete(ApiKeyRow).where(ApiKeyRow.prefix.in_(old))).rowcount
