"""Copying an SQLite database while others use it, and bringing it back.

SQLite's online backup (https://www.sqlite.org/backup.html) copies a consistent state page by page; writers go on.  The
jobs of a service live in a file of their own beside the plans (``address.jobs_path``) and are copied with them.  Copies
are written under another name, checked, and only then renamed: nothing half-written is ever left in place.
PostgreSQL has its own tools for this.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from planner.store.address import database_url, display, jobs_path, prepare_directory, sqlite_path
from planner.store.engine import BUSY_TIMEOUT_MS
from planner.store.errors import StoreCorrupt, StoreTooNew, StoreUnavailable
from planner.store.schema import known_revisions
from profiles.errors import Conflict, NotFound

PAGES_A_STEP = 1_000


def backup_store(copy: Path, url: str | None = None) -> tuple[Path, ...]:
    """Copy the database at ``url`` to ``copy``, its jobs beside it; the files written.

    Raises Conflict where a copy exists or the database is PostgreSQL, NotFound without a database, StoreError.
    """
    address = database_url(url)
    path = _file_of(address, "pg_dump")
    if not path.exists():
        raise NotFound("there is no plan database to copy", where=str(path), hint="name it with --database")
    return _copied([(path, copy), (jobs_path(path), jobs_path(copy))])


def restore_store(copy: Path, url: str | None = None) -> tuple[Path, ...]:
    """Bring a copy back as the database at ``url``; the files written.

    Raises Conflict where a database exists, NotFound without a copy, StoreCorrupt, StoreTooNew, StoreError.
    """
    address = database_url(url)
    path = _file_of(address, "pg_restore")
    if not copy.exists():
        raise NotFound("there is no such copy", where=str(copy))
    _check_schema(copy)
    prepare_directory(address)
    return _copied([(copy, path), (jobs_path(copy), jobs_path(path))])


def _file_of(address: str, tool: str) -> Path:
    path = sqlite_path(address)
    if path is None:
        raise Conflict(
            "only SQLite databases are copied by this command", where=display(address), hint=f"use PostgreSQL's {tool}"
        )
    return path


def _copied(pairs: list[tuple[Path, Path]]) -> tuple[Path, ...]:
    """Copy those that exist: all, or none."""
    wanted = [(source, target) for source, target in pairs if source.exists()]
    for _, target in pairs:
        if target.exists():
            raise Conflict("the file exists", where=str(target), hint="move it away, or choose another name")
    try:
        for source, target in wanted:
            _copy(source, _partial(target))
        return tuple(_partial(target).rename(target) for _, target in wanted)
    finally:
        for _, target in wanted:
            _partial(target).unlink(missing_ok=True)


def _partial(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial")


def _copy(source: Path, copy: Path) -> None:
    """Copy and check one file."""
    copy.unlink(missing_ok=True)
    with _sqlite_errors(source), closing(_reading(source)) as reader, closing(sqlite3.connect(copy)) as writer:
        reader.backup(writer, pages=PAGES_A_STEP)
        found = writer.execute("PRAGMA integrity_check").fetchone()[0]
    if found != "ok":
        raise StoreCorrupt(f"the database is damaged: {found}", where=str(source))


def _check_schema(copy: Path) -> None:
    """Refuse what is no plan database of this release or an older one."""
    with _sqlite_errors(copy), closing(_reading(copy)) as reader:
        tables = {name for (name,) in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "alembic_version" not in tables:
            raise StoreCorrupt("the file is not a plan database", where=str(copy), hint="name a file of `db backup`")
        revision = reader.execute("SELECT version_num FROM alembic_version").fetchone()
    if revision is None or revision[0] not in known_revisions():
        raise StoreTooNew(
            "the copy has a schema that this release does not know", where=str(copy), hint="use the newer release"
        )


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_MS / 1000)


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        damaged = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
        kind = StoreCorrupt if damaged else StoreUnavailable
        raise kind(f"the database cannot be copied ({error})", where=str(path)) from error
