"""Exceptions of the database driver, each translated to one clear error of ``planner.store.errors``.

SQLite: primary result codes, https://www.sqlite.org/rescode.html (extended code & 0xff).
PostgreSQL: SQLSTATE classes, https://www.postgresql.org/docs/current/errcodes-appendix.html.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from planner.store.address import ENVIRONMENT_VARIABLE, display
from planner.store.errors import (
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from profiles.errors import MeshwrightError

_ELSEWHERE = f"or point ${ENVIRONMENT_VARIABLE} at another database"

_SQLITE: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_READONLY: (
        StoreReadOnly,
        "the plan database is read-only",
        f"make the file and its folder writable, {_ELSEWHERE}",
    ),
    sqlite3.SQLITE_FULL: (StoreFull, "no space is left for the plan database", f"free disk space, {_ELSEWHERE}"),
    sqlite3.SQLITE_IOERR: (
        StoreFull,
        "the plan database cannot be written: disk or quota is full, or the disk fails",
        f"free disk space and look at the disk's health, {_ELSEWHERE}",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreCorrupt,
        "the plan database is damaged",
        f"restore a backup or move the file away (plans can be computed again), {_ELSEWHERE}",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreCorrupt,
        "the file is not a plan database",
        f"move the file away, {_ELSEWHERE}",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnavailable,
        "the plan database cannot be opened",
        f"make the file and its folder readable and writable, {_ELSEWHERE}",
    ),
    sqlite3.SQLITE_BUSY: (
        StoreUnavailable,
        "another process has held the plan database locked for too long",
        "end that process, or try again",
    ),
    sqlite3.SQLITE_PERM: (StoreUnavailable, "the plan database may not be accessed", "repair its permissions"),
}

_POSTGRES: tuple[tuple[str, type[StoreError], str, str], ...] = (
    ("53100", StoreFull, "the PostgreSQL server's disk is full", "free disk space on the server"),
    ("53", StoreUnavailable, "the PostgreSQL server has no resources left", "raise its limits, or try again"),
    ("25006", StoreReadOnly, "the PostgreSQL server is read-only", "connect to the primary, not to a standby"),
    ("42501", StoreReadOnly, "the PostgreSQL role may not write here", "grant it the schema's rights"),
    ("28", StoreUnavailable, "the PostgreSQL server refuses the log-in", f"repair ${ENVIRONMENT_VARIABLE}"),
    ("3D000", StoreUnavailable, "the PostgreSQL database does not exist", "create it with createdb"),
    ("55P03", StoreUnavailable, "the plan database has been locked for too long", "try again"),
    ("40", StoreUnavailable, "two transactions collided", "try again"),
    ("57", StoreUnavailable, "the PostgreSQL server is going down or starting", "try again"),
    ("08", StoreUnavailable, "the connection to the PostgreSQL server broke", "try again"),
    ("XX", StoreCorrupt, "the PostgreSQL server reports damaged data", "look at the server's log"),
)


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn every SQLAlchemy or driver exception inside the block into a StoreError about ``url``."""
    try:
        yield
    except MeshwrightError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "psycopg":
            raise
        raise StoreUnavailable(
            "the PostgreSQL driver is not installed",
            where=display(url),
            hint="pip install 'meshwright[postgres]', or use an SQLite file",
        ) from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise StoreUnavailable(
            "the database URL cannot be understood", where=display(url), hint="postgresql://user@host:5432/database"
        ) from error
    except DBAPIError as error:
        raise _from_driver(error, url) from error
    except NoConnectionFree as error:
        raise StoreUnavailable(
            "every connection to the plan database is in use", where=display(url), hint="try again"
        ) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the plan database failed: {error}", where=display(url)) from error


def _from_driver(error: DBAPIError, url: str) -> StoreError:
    origin = error.orig
    said = str(origin).strip().splitlines()
    detail = said[0] if said else type(origin).__name__
    sqlite_code: int | None = getattr(origin, "sqlite_errorcode", None)
    if sqlite_code is not None and (sqlite_code & 0xFF) in _SQLITE:
        kind, what, hint = _SQLITE[sqlite_code & 0xFF]
        return kind(f"{what} ({detail})", where=display(url), hint=hint)
    state: str | None = getattr(origin, "sqlstate", None)
    if state is not None:
        for prefix, kind, what, hint in _POSTGRES:
            if state.startswith(prefix):
                return kind(f"{what} ({detail})", where=display(url), hint=hint)
    elif sqlite_code is None and (error.connection_invalidated or type(error).__name__ == "OperationalError"):
        # psycopg gives no SQLSTATE when it never reached a server, or lost it before it could say anything.
        return StoreUnavailable(
            f"the PostgreSQL server cannot be reached ({detail})",
            where=display(url),
            hint=f"start the server, or repair ${ENVIRONMENT_VARIABLE}",
        )
    return StoreError(f"the plan database failed ({detail})", where=display(url))
