"""A reader for foreign SQLite files that are not trusted: read-only, real tables only, with a deadline.

Opened with ``mode=ro&immutable=1`` (no journal is replayed, nothing is written beside it) and ``trusted_schema=OFF``.
Views are not read unless the format is made of them: a view may hide an endless recursion, which the deadline ends.
Every error of SQLite becomes DocumentInvalid.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from profiles.errors import DocumentInvalid, NotFound
from profiles.importing.source_file import SourceFile

DEADLINE_S = 600.0
_STEPS_BETWEEN_CHECKS = 100_000
_LONGEST_VALUE_BYTES = 16 << 20
_MAX_TABLES = 10_000
# SQLite repeats names of a damaged schema in its messages, which Python then cannot decode.
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)
_CACHE_KIB = 256 * 1024


class Database:
    """One SQLite file of a tool."""

    def __init__(self, file: SourceFile, deadline_s: float = DEADLINE_S, *, views: bool = False) -> None:
        self._file = file
        self._types = "('table', 'view')" if views else "('table')"
        self._ends_at = time.monotonic() + deadline_s
        if not file.path.exists():
            raise NotFound("there is no such file", where=file.where, hint="check the path")
        _refuse_compressed(file)
        try:
            uri = f"{file.path.resolve().as_uri()}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True)
            self._connection.text_factory = _decode
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE_BYTES)
            self._connection.set_progress_handler(self._is_late, _STEPS_BETWEEN_CHECKS)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        except _DAMAGED as error:
            raise self.damaged(error) from None
        self._columns: dict[str, frozenset[str]] = {}
        try:
            self._columns = self._probe()
        except DocumentInvalid:
            self._connection.close()
            raise

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is such a table with all these columns."""
        return table in self._columns and self._columns[table] >= set(columns)

    @property
    def tables(self) -> frozenset[str]:
        """Names of all tables that may be read."""
        return frozenset(self._columns)

    def rows(self, query: str, parameters: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of a query, streamed.  Raises DocumentInvalid for a damaged file or past the deadline."""
        try:
            # No ``yield from``: it would close the cursor of a generator that outlives the connection.
            for row in self._connection.execute(query, parameters):  # noqa: UP028
                yield row
        except (*_DAMAGED, OverflowError, MemoryError) as error:
            raise self.damaged(error) from None

    def value(self, query: str) -> Any:
        """First cell of the first row; None without rows."""
        row = next(self.rows(query), None)
        return None if row is None else row[0]

    def setting(self, table: str, name: str) -> str:
        """A value of a name-value table; empty without it."""
        if not self.has(table, "name", "value"):
            return ""
        query = f"SELECT value FROM {table} WHERE name = ? AND typeof(value) = 'text' LIMIT 1"
        row = next(self.rows(query, (name,)), None)
        return "" if row is None else str(row[0])[:200]

    def damaged(self, error: BaseException) -> DocumentInvalid:
        """The error for a file that SQLite cannot read, or not in time."""
        if time.monotonic() > self._ends_at:
            what, hint = "reading the database takes too long", "record a shorter run, or export fewer tables"
        else:
            what, hint = f"the database cannot be read: {error}", "copy the file again, or export the report again"
        return DocumentInvalid(what, where=self._file.where, hint=hint)

    def _is_late(self) -> int:
        return 1 if time.monotonic() > self._ends_at else 0

    def _probe(self) -> dict[str, frozenset[str]]:
        query = f"SELECT name FROM sqlite_master WHERE type IN {self._types} LIMIT {_MAX_TABLES}"
        names = [str(row[0]) for row in self.rows(query)]
        found: dict[str, frozenset[str]] = {}
        for name in names:
            if name.isidentifier():
                found[name] = frozenset(str(row[1]) for row in self.rows(f"PRAGMA table_info({name})"))
        return found


def _refuse_compressed(file: SourceFile) -> None:
    with file.path.open("rb") as raw:
        if raw.read(2) == b"\x1f\x8b":
            hint = f"unpack it first: gunzip {file.name}"
            raise DocumentInvalid("a compressed database cannot be read in place", where=file.where, hint=hint)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")
