"""The sweeps that were asked for, and how far each is: a row a sweep, a row a cell.

A cell is open (``waiting``, ``running``) until what came of it is known; after that it changes only when its sweep is
asked for again and it has no answer (``failed``, ``missing``).  Each method is one transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, or_, select, text, tuple_, update

from planner.store import named
from planner.store.engine import reading, writing
from planner.store.records import SweepCell, SweepRecord
from planner.store.removal import forget_documents
from planner.store.saving import hold_documents, insert_absent, insert_documents
from planner.store.tables import IdempotencyKeyRow, SweepCellRow, SweepRow
from profiles.document import Document
from profiles.errors import Conflict, NotFound

WAITING, RUNNING = "waiting", "running"
OPEN = (WAITING, RUNNING)
WITHOUT_ANSWER = ("failed", "missing")
"""States that a repeated sweep tries again."""

# Any constant: who moves sweeps on takes it.
_DRIVING_LOCK = 0x6D657377


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked: the axes, and the document that says what their names meant."""

    question: Document
    document: Document


class SweepStore:
    """The tables of sweeps, on the engine of a ``Store``."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._clock = clock

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else moves sweeps on; nobody else will until the block ends.  Raises StoreError."""
        if self._engine.dialect.name != "postgresql":
            yield True
            return
        with reading(self._engine) as connection:
            got = connection.execute(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _DRIVING_LOCK}).scalar()
            yield bool(got)

    def keep(self, sweep_id: str, asked: Asked, owner: str, cells: Sequence[SweepCell]) -> SweepRecord:
        """The sweep, on disk on return.  One that is there goes on: cells without an answer become open again."""
        with writing(self._engine) as connection:
            sha = insert_documents(connection, {"sweep": asked.document})["sweep"]
            row = {
                "sweep_id": sweep_id,
                "document_sha": sha,
                "question": asked.question.canonical_json(),
                "owner": owner,
                "created_at": self._clock(),
            }
            if insert_absent(connection, SweepRow, [row]):
                connection.execute(insert(SweepCellRow), [_row(sweep_id, cell) for cell in cells])
            else:
                self._reopen(connection, sweep_id, cells)
            self._end(connection, sweep_id)
            return _known(connection, sweep_id)

    def get(self, sweep_id: str) -> SweepRecord:
        """The sweep as it stands.  Raises NotFound."""
        with reading(self._engine) as connection:
            return _known(connection, sweep_id)

    def document(self, sweep_id: str) -> Any:
        """What the names of a sweep meant, as plain data.  Raises NotFound."""
        with reading(self._engine) as connection:
            return named.body(connection, _known(connection, sweep_id).document_sha)

    def page(self, *, limit: int, after: str | None = None) -> tuple[SweepRecord, ...]:
        """Sweeps, newest first; ``after`` is the last one already seen.  Raises NotFound for an unknown one."""
        query = select(SweepRow.__table__).order_by(SweepRow.created_at.desc(), SweepRow.sweep_id.desc()).limit(limit)
        with reading(self._engine) as connection:
            if after is not None:
                last = _known(connection, after)
                seen = tuple_(last.created_at, last.sweep_id)
                query = query.where(tuple_(SweepRow.created_at, SweepRow.sweep_id) < seen)
            return tuple(SweepRecord(**row) for row in connection.execute(query).mappings())

    def open_sweeps(self) -> tuple[SweepRecord, ...]:
        """Sweeps that have not ended, oldest first."""
        query = select(SweepRow.__table__).where(SweepRow.ended_at.is_(None))
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(SweepRow.created_at, SweepRow.sweep_id)).mappings()
            return tuple(SweepRecord(**row) for row in rows)

    def counts(self, sweep_ids: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Cells of each sweep by state."""
        query = (
            select(SweepCellRow.sweep_id, SweepCellRow.state, func.count())
            .where(SweepCellRow.sweep_id.in_(sweep_ids))
            .group_by(SweepCellRow.sweep_id, SweepCellRow.state)
        )
        found: defaultdict[str, dict[str, int]] = defaultdict(dict)
        with reading(self._engine) as connection:
            for sweep_id, state, count in connection.execute(query):
                found[sweep_id][state] = count
        return found

    def cells(self, sweep_id: str, *, open_only: bool = False) -> tuple[SweepCell, ...]:
        """The cells in their order."""
        columns = (SweepCellRow.position, SweepCellRow.state, SweepCellRow.line, SweepCellRow.job_id)
        query = select(*columns).where(SweepCellRow.sweep_id == sweep_id).order_by(SweepCellRow.position)
        if open_only:
            query = query.where(SweepCellRow.state.in_(OPEN))
        with reading(self._engine) as connection:
            return tuple(SweepCell(*row) for row in connection.execute(query))

    def change(self, sweep_id: str, cells: Sequence[SweepCell]) -> None:
        """Keep what is known of open cells now; those that are no longer open stay as they are."""
        if not cells:
            return
        change = (
            update(SweepCellRow)
            .where(
                SweepCellRow.sweep_id == bindparam("of_sweep"),
                SweepCellRow.position == bindparam("at"),
                or_(*(SweepCellRow.state == state for state in OPEN)),
            )
            .values(state=bindparam("new_state"), line=bindparam("new_line"), job_id=bindparam("new_job"))
        )
        with writing(self._engine) as connection:
            connection.execute(
                change,
                [
                    {
                        "of_sweep": sweep_id,
                        "at": cell.position,
                        "new_state": cell.state,
                        "new_line": cell.line,
                        "new_job": cell.job_id,
                    }
                    for cell in cells
                ],
            )
            self._end(connection, sweep_id)

    def cancel(self, sweep_id: str) -> SweepRecord:
        """Wish its end; harmless for a sweep that has ended.  Raises NotFound."""
        change = update(SweepRow).where(
            SweepRow.sweep_id == sweep_id, SweepRow.ended_at.is_(None), SweepRow.cancelled_at.is_(None)
        )
        with writing(self._engine) as connection:
            connection.execute(change.values(cancelled_at=self._clock()))
            return _known(connection, sweep_id)

    def remove(self, sweep_id: str) -> int:
        """Remove a sweep that has ended, with its cells; how many it had.  Plans stay.  Raises NotFound, Conflict."""
        with writing(self._engine) as connection:
            hold_documents(connection, alone=True)
            if _known(connection, sweep_id).ended_at is None:
                raise Conflict("the sweep still runs", where="sweep", hint="cancel it first, and wait for its end")
            document = select(SweepRow.document_sha).where(SweepRow.sweep_id == sweep_id)
            sha = connection.execute(document).scalar_one()
            count = connection.execute(delete(SweepCellRow).where(SweepCellRow.sweep_id == sweep_id)).rowcount
            connection.execute(delete(IdempotencyKeyRow).where(IdempotencyKeyRow.sweep_id == sweep_id))
            connection.execute(delete(SweepRow).where(SweepRow.sweep_id == sweep_id))
            forget_documents(connection, {sha})
        return count

    def jobs_of_others(self, sweep_id: str) -> frozenset[str]:
        """Jobs that other sweeps, which nobody wishes to end, wait for."""
        query = (
            select(SweepCellRow.job_id)
            .join(SweepRow, SweepRow.sweep_id == SweepCellRow.sweep_id)
            .where(
                SweepRow.sweep_id != sweep_id,
                SweepRow.ended_at.is_(None),
                SweepRow.cancelled_at.is_(None),
                SweepCellRow.state.in_(OPEN),
            )
        )
        with reading(self._engine) as connection:
            return frozenset(job for job in connection.execute(query).scalars() if job is not None)

    def _reopen(self, connection: Connection, sweep_id: str, cells: Sequence[SweepCell]) -> None:
        here = (SweepCellRow.sweep_id == sweep_id, SweepCellRow.state.in_(WITHOUT_ANSWER))
        asked = {cell.position: cell for cell in cells}
        unanswered = connection.execute(select(SweepCellRow.position).where(*here)).scalars().all()
        for position in unanswered:
            again = update(SweepCellRow).where(*here, SweepCellRow.position == position)
            connection.execute(again.values(state=asked[position].state, line=asked[position].line, job_id=None))
        going_on = {"cancelled_at": None, **({"ended_at": None} if unanswered else {})}
        connection.execute(update(SweepRow).where(SweepRow.sweep_id == sweep_id).values(going_on))

    def _end(self, connection: Connection, sweep_id: str) -> None:
        """Say that a sweep without open cells has ended."""
        left = select(SweepCellRow.position).where(SweepCellRow.sweep_id == sweep_id, SweepCellRow.state.in_(OPEN))
        here = (SweepRow.sweep_id == sweep_id, SweepRow.ended_at.is_(None), ~left.exists())
        connection.execute(update(SweepRow).where(*here).values(ended_at=self._clock()))


def _row(sweep_id: str, cell: SweepCell) -> dict[str, object]:
    return {
        "sweep_id": sweep_id,
        "position": cell.position,
        "state": cell.state,
        "job_id": cell.job_id,
        "line": cell.line,
    }


def _known(connection: Connection, sweep_id: str) -> SweepRecord:
    row = connection.execute(select(SweepRow.__table__).where(SweepRow.sweep_id == sweep_id)).mappings().first()
    if row is None:
        raise NotFound("there is no such sweep", where=sweep_id, hint="GET /v1/sweeps lists those that are kept")
    return SweepRecord(**row)
