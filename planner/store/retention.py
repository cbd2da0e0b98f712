"""What is old enough to go, and who removes it?  Rows in small portions, by one process at a time.

On PostgreSQL several services share a database: the one that gets the advisory lock removes, the others go on with
their work.  On SQLite, removing twice at the same time removes nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Engine, delete, select, text, tuple_

from planner.store.engine import reading, writing
from planner.store.tables import AuditRow, IdempotencyKeyRow

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
