"""Database connections: one engine, the same rules on both databases.

SQLite: WAL (readers never block the writer), ``synchronous=NORMAL`` (safe in WAL against a crash of the process;
https://www.sqlite.org/wal.html#performance_considerations), foreign keys on, a minute of patience with other
writers: SQLite serves them in no order, and on a busy machine one of many waits for many turns of others.
A writing transaction takes the write lock at once (``BEGIN IMMEDIATE``): upgrading a reading transaction later fails
without waiting when another writer was faster.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from planner.store.address import display
from planner.store.errors import StoreReadOnly
from planner.store.faults import translated
from planner.store.watching import watched

BUSY_TIMEOUT_MS = 60_000
"""How long an SQLite connection waits for the lock of another."""
LOCK_TIMEOUT_MS = 10_000
"""How long PostgreSQL lets a statement wait for a lock; it serves those who wait in their order."""
CONNECT_TIMEOUT_S = 10
_WRITES = "meshwright_writes"


def make_engine(url: str) -> Engine:
    """An engine for ``url``; connects to nothing yet."""
    with translated(url):
        if url.startswith("sqlite:"):
            # SQLAlchemy's own pool for files keeps connections open per thread; the time-out is set by pragma.
            engine = create_engine(url)
            event.listen(engine, "connect", _on_sqlite_connect)
            event.listen(engine, "begin", _on_sqlite_begin)
            return engine
        return create_engine(
            with_server_settings(_parsed(url)),
            pool_pre_ping=True,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_S},
        )


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A consistent read; StoreError on failure."""
    with watched("read"), translated(shown(engine)), engine.begin() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction: all of it is stored, or nothing; StoreError on failure."""
    try:
        with watched("write"), translated(shown(engine)), engine.connect() as connection:
            connection.execution_options(**{_WRITES: True})
            with connection.begin():
                yield connection
    except StoreReadOnly:
        # SQLite opens a file that it may not write for reading, and keeps to that: the next one opens it anew.
        engine.dispose()
        raise


def with_server_settings(address: URL) -> URL:
    """``address`` with what every connection to PostgreSQL asks of the server.

    Patience with locks; and plans for the table as it is: a prepared statement that was planned while its table was
    empty would read all of it for as long as the connection lives.
    """
    given = address.query.get("options", "")
    options = f"{given} -c lock_timeout={LOCK_TIMEOUT_MS} -c plan_cache_mode=force_custom_plan"
    return address.update_query_dict({"options": options.strip()})


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except ValueError as error:
        # SQLAlchemy lets the failure of int(port) through.
        raise ArgumentError(str(error)) from error


def shown(engine: Engine) -> str:
    """The address of ``engine`` as the user gave it, without its password."""
    return display(engine.url.difference_update_query(["options"]).render_as_string(hide_password=True))


def _on_sqlite_connect(connection: Any, _entry: ConnectionPoolEntry) -> None:
    # The driver's own BEGIN comes too late for DDL; transactions are begun in _on_sqlite_begin instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA foreign_keys=ON")
        # The mode is written in the file: a failure here means that somebody else is setting it, or that the
        # file cannot be written, which the first statement reports better.
        with suppress(sqlite3.OperationalError):
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
    finally:
        cursor.close()


def _on_sqlite_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
