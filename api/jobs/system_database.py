"""The database of jobs: the system database of DBOS Transact, next to the plans.

SQLite: ``plans.db`` -> ``plans.jobs.db`` in the same folder.  PostgreSQL: the same database, schema ``dbos``.

One engine serves the board and the worker's bookkeeping.  SQLite runs in WAL mode with ``synchronous=FULL``: a commit
that returned survives a power cut (https://www.sqlite.org/pragma.html#pragma_synchronous), which is the promise of
``submit``.  Writers take the write lock when their transaction begins.
"""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.pool import ConnectionPoolEntry

from planner.store.address import SQLITE_PREFIX, database_url, jobs_path, prepare_directory, sqlite_path
from planner.store.engine import BUSY_TIMEOUT_MS, with_server_settings
from planner.store.faults import translated

APPLICATION = "meshwright"
APPLICATION_VERSION = "jobs-1"
"""Changes only when the steps of ``api.jobs.program`` change, so that an upgrade finishes what older workers began."""
SCHEMA = "dbos"
QUEUE = "meshwright-plans"
WORKERS = "meshwright-workers"
"""Queue of the rows by which workers show that they live; nobody serves it."""
PROGRAM = "plan"
"""Name of the durable program that a job runs."""

CONNECT_TIMEOUT_S = 5
MANY_CONNECTIONS = 8


def system_database_url(store_url: str | None) -> str:
    """The URL of the jobs' database for a plan store; in SQLAlchemy's spelling."""
    url = database_url(store_url)
    path = sqlite_path(url)
    if path is None:
        return url
    return SQLITE_PREFIX + str(jobs_path(path))


def prepare_system_database(url: str) -> None:
    """Create or migrate DBOS's tables; harmless when they are there.  Raises StoreError."""
    # It tells of every migration and connection at INFO.
    logging.getLogger("dbos").setLevel(logging.WARNING)
    prepare_directory(url)
    with translated(url):
        path = sqlite_path(url)
        if path is not None:
            _use_wal(path)
        DBOS.migrate(url, schema=SCHEMA)


def make_system_engine(url: str, connections: int = MANY_CONNECTIONS) -> Engine:
    """An engine for the jobs' database; connects to nothing yet."""
    with translated(url):
        if url.startswith("sqlite:"):
            engine = create_engine(url, pool_size=connections, max_overflow=0, pool_timeout=BUSY_TIMEOUT_MS / 1000)
            event.listen(engine, "connect", _on_sqlite_connect)
            return engine
        return create_engine(
            with_server_settings(make_url(url)),
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
            pool_timeout=CONNECT_TIMEOUT_S,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "meshwright-jobs"},
        )


def make_client(engine: Engine) -> DBOSClient:
    """DBOS's client on ``engine``; a lost connection is an error at once, not a wait."""
    return DBOSClient(
        system_database_engine=engine,
        dbos_system_schema=SCHEMA,
        serializer=DBOSPortableJSONSerializer(),
        application_name=APPLICATION,
        lazy=True,
        retry_connection_errors=False,
    )


def status_table(engine: Engine) -> str:
    """The table of workflow states as SQL names it (https://docs.dbos.dev/explanations/system-tables)."""
    return "workflow_status" if engine.dialect.name == "sqlite" else f'"{SCHEMA}".workflow_status'


def _use_wal(path: Path) -> None:
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.DatabaseError:
        # Not a database, not writable, or in use by another starter: the migration finds out, and says it better.
        return
    finally:
        connection.close()


def _on_sqlite_connect(connection: Any, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = "IMMEDIATE"
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA synchronous=FULL")
    finally:
        cursor.close()
