"""The audit trail, who changed or tried to change what: rows are added, read by page, and removed when old.

Nothing here changes a row; triggers of the database refuse it too (``tables``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, insert, select

from planner.store.engine import reading, writing
from planner.store.records import AuditEvent, AuditRecord
from planner.store.tables import AuditRow

WIDTHS = {"request_id": 64, "principal": 255, "client": 64, "method": 16, "route": 128, "resource": 255}
"""Longest text of a column; what is longer is cut, because a record that is refused is worth nothing."""


class AuditTrail:
    """The table of audit events."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._clock = clock

    def append(self, events: Sequence[AuditEvent]) -> None:
        """Put events on record, all or none.  Raises StoreError."""
        with writing(self._engine) as connection:
            append_events(connection, events, self._clock())

    def page(
        self, *, limit: int, before: int | None = None, principal: str | None = None, phase: str | None = None
    ) -> tuple[AuditRecord, ...]:
        """Events, newest first; ``before`` is the number of the last one already seen."""
        query = select(AuditRow.__table__).order_by(AuditRow.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(AuditRow.seq < before)
        if principal is not None:
            query = query.where(AuditRow.principal == principal)
        if phase is not None:
            query = query.where(AuditRow.phase == phase)
        with reading(self._engine) as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        return tuple(AuditRecord(row.pop("seq"), row.pop("at"), AuditEvent(**row)) for row in rows)


def append_events(connection: Connection, events: Sequence[AuditEvent], now: datetime) -> None:
    """The same inside the transaction of what is put on record."""
    if events:
        connection.execute(insert(AuditRow), [{**asdict(event), **_fitting(event), "at": now} for event in events])


def _fitting(event: AuditEvent) -> dict[str, str]:
    """Text that a column of either database can hold: cut, and without what is no text."""
    return {name: _plain(getattr(event, name))[:width] for name, width in WIDTHS.items()}


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
