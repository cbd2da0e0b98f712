"""What the service keeps beside plans: named documents, API keys, and requests under a client's own key.

Each method is one transaction.  Safe to share between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, select, tuple_, update

from planner.store import named, removal
from planner.store.audit import append_events
from planner.store.engine import reading, writing
from planner.store.records import ApiKeyRecord, AuditEvent, IdempotencyRecord, NamedRecord
from planner.store.saving import insert_absent
from planner.store.schema import HEAD_REVISION, current_revision
from planner.store.tables import ApiKeyRow, IdempotencyKeyRow
from planner.store.writable import check_writable
from profiles.document import Document

ABANDONED = timedelta(seconds=20)
"""A claim that was not renewed for so long died with its server: the next request with its key takes over."""
RENEWED_AT_ONCE = 500

_UNANSWERED = (
    IdempotencyKeyRow.plan_id.is_(None),
    IdempotencyKeyRow.job_id.is_(None),
    IdempotencyKeyRow.problem.is_(None),
    IdempotencyKeyRow.sweep_id.is_(None),
)


class ServiceStore:
    """The service's own tables, on the engine of a ``Store``."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._clock = clock

    def is_ready(self) -> bool:
        """Whether the database has this release's schema.  Raises StoreError when it is away, full or read-only."""
        with reading(self._engine) as connection:
            check_writable(connection)
            return current_revision(connection) == HEAD_REVISION

    # --- Named documents ---------------------------------------------------------------------------------------------

    def named(self, kind: str, name: str) -> tuple[NamedRecord, Any] | None:
        """What a name means now, with the document's plain data; None for an unknown name."""
        with reading(self._engine) as connection:
            record = named.current(connection, kind, name)
            return None if record is None else (record, named.body(connection, record.sha))

    def named_body(self, sha: str) -> Any:
        """The plain data of a version of a name."""
        with reading(self._engine) as connection:
            return named.body(connection, sha)

    def list_named(self, kind: str) -> tuple[NamedRecord, ...]:
        """Every name of a kind."""
        with reading(self._engine) as connection:
            return named.list_current(connection, kind)

    def put_named(self, kind: str, name: str, document: Document, expected: str | None) -> NamedRecord:
        """A new version of a name.  Raises Conflict when ``expected`` is not what it means now."""
        with writing(self._engine) as connection:
            return named.put(connection, kind, name, document, expected, self._clock())

    def remove_named(self, kind: str, name: str, expected: str | None) -> int:
        """Remove a name; how many versions it had.  Raises NotFound, Conflict when it does not mean ``expected``."""
        with writing(self._engine) as connection:
            return removal.remove_named(connection, kind, name, expected)

    # --- API keys ----------------------------------------------------------------------------------------------------

    def add_api_key(self, record: ApiKeyRecord, on_record: AuditEvent | None = None) -> None:
        """Keep a new key (its hash), and put on record who made it, or neither."""
        row = {name: getattr(record, name) for name in ApiKeyRecord.__slots__}
        row["scopes"] = ",".join(record.scopes)
        with writing(self._engine) as connection:
            connection.execute(insert(ApiKeyRow).values(**row))
            self._record(connection, on_record)

    def api_key(self, prefix: str) -> ApiKeyRecord | None:
        """The key of a prefix, expired and revoked ones included."""
        return next(iter(self.api_keys(prefix)), None)

    def api_keys(self, prefix: str | None = None) -> tuple[ApiKeyRecord, ...]:
        """Every key, oldest first."""
        query = select(ApiKeyRow.__table__).order_by(ApiKeyRow.created_at, ApiKeyRow.prefix)
        if prefix is not None:
            query = query.where(ApiKeyRow.prefix == prefix)
        with reading(self._engine) as connection:
            rows = connection.execute(query).mappings().all()
        return tuple(ApiKeyRecord(**{**row, "scopes": tuple(row["scopes"].split(","))}) for row in rows)

    def revoke_api_key(self, prefix: str, on_record: AuditEvent | None = None) -> bool:
        """End a key, and put on record who did; False for an unknown one."""
        change = update(ApiKeyRow).where(ApiKeyRow.prefix == prefix, ApiKeyRow.revoked_at.is_(None))
        with writing(self._engine) as connection:
            connection.execute(change.values(revoked_at=self._clock()))
            self._record(connection, on_record)
        return self.api_key(prefix) is not None

    def _record(self, connection: Connection, on_record: AuditEvent | None) -> None:
        append_events(connection, [] if on_record is None else [on_record], self._clock())

    # --- Idempotency -------------------------------------------------------------------------------------------------

    def claim_key(self, owner: str, key: str, request_sha: str) -> IdempotencyRecord | None:
        """Take a key for a request; None = it is ours now, else the record of who has it.

        A record that was never answered, and not renewed for ``ABANDONED``, is taken over.
        """
        now = self._clock()
        row = {"owner": owner, "key": key, "request_sha": request_sha, "created_at": now}
        here = (IdempotencyKeyRow.owner == owner, IdempotencyKeyRow.key == key)
        with writing(self._engine) as connection:
            abandoned = IdempotencyKeyRow.created_at < now - ABANDONED
            connection.execute(delete(IdempotencyKeyRow).where(*here, *_UNANSWERED, abandoned))
            if insert_absent(connection, IdempotencyKeyRow, [row]):
                return None
            found = connection.execute(select(IdempotencyKeyRow.__table__).where(*here)).mappings().one()
        return IdempotencyRecord(**found)

    def renew_keys(self, keys: Sequence[tuple[str, str]]) -> None:
        """Requests under these keys (owner, key) are still being answered."""
        here = tuple_(IdempotencyKeyRow.owner, IdempotencyKeyRow.key)
        with writing(self._engine) as connection:
            for start in range(0, len(keys), RENEWED_AT_ONCE):
                some = here.in_(keys[start : start + RENEWED_AT_ONCE])
                connection.execute(update(IdempotencyKeyRow).where(some, *_UNANSWERED).values(created_at=self._clock()))

    def keyed_request(self, owner: str, key: str) -> IdempotencyRecord | None:
        """What is known about a request under a key."""
        here = (IdempotencyKeyRow.owner == owner, IdempotencyKeyRow.key == key)
        with reading(self._engine) as connection:
            found = connection.execute(select(IdempotencyKeyRow.__table__).where(*here)).mappings().first()
        return None if found is None else IdempotencyRecord(**found)

    def answer_key(
        self,
        owner: str,
        key: str,
        *,
        plan_id: str | None = None,
        job_id: str | None = None,
        problem: str | None = None,
        sweep_id: str | None = None,
    ) -> None:
        """Keep what a request under a key was answered."""
        here = (IdempotencyKeyRow.owner == owner, IdempotencyKeyRow.key == key)
        answer = {"plan_id": plan_id, "job_id": job_id, "problem": problem, "sweep_id": sweep_id}
        change = update(IdempotencyKeyRow).where(*here).values(answer)
        with writing(self._engine) as connection:
            connection.execute(change)

    def release_key(self, owner: str, key: str) -> None:
        """Forget a request that could not be answered, so that it can be repeated; one that was is kept."""
        here = (IdempotencyKeyRow.owner == owner, IdempotencyKeyRow.key == key)
        with writing(self._engine) as connection:
            connection.execute(delete(IdempotencyKeyRow).where(*here, *_UNANSWERED))
