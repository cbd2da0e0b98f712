"""An engine for DBOS that waits while PostgreSQL is away, and goes on within a second of a new connection.

DBOS repeats a statement that lost its connection, but doubles its pause up to a minute and a half, and takes some
failures to connect (a socket that is not there) for the end of the job.  So the wait stands one floor below: asking for
a connection takes as long as the server is away.  A worker that must end sets ``give_up``.

Only the engine that DBOS runs programs on is patient.  Heartbeats, notes and boards must hear that nobody is there.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import Dialect

from api.jobs.system_database import CONNECT_TIMEOUT_S
from planner.store.engine import with_server_settings
from planner.store.faults import translated

RETRY_S = 0.5
IDLE_TRANSACTION_MS = 60_000
"""A worker that stands still inside a transaction keeps its locks from everybody else no longer than this."""
LONGEST_WAIT_S = 86_400.0

log = logging.getLogger("meshwright.worker")


def make_patient_engine(url: str, connections: int, give_up: threading.Event) -> Engine | None:
    """An engine of so many connections for DBOS; None for SQLite, whose file is never away."""
    if url.startswith("sqlite:"):
        return None
    with translated(url):
        address = with_server_settings(make_url(url))
        options = f"{address.query['options']} -c idle_in_transaction_session_timeout={IDLE_TRANSACTION_MS}"
        engine = create_engine(
            address.update_query_dict({"options": options}),
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
            # Behind those that wait for the server; they all go on together.
            pool_timeout=LONGEST_WAIT_S,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "meshwright-worker"},
        )
    event.listen(engine, "do_connect", _Connecting(give_up))
    return engine


class _Connecting:
    """Connects, however long that takes."""

    def __init__(self, give_up: threading.Event) -> None:
        self._give_up = give_up

    def __call__(self, dialect: Dialect, _record: Any, positional: Any, named: Any) -> Any:
        """A connection of the driver.  Raises the driver's own error once ``give_up`` is set."""
        while True:
            try:
                return dialect.connect(*positional, **named)
            except dialect.loaded_dbapi.OperationalError as error:
                if self._give_up.wait(RETRY_S):
                    raise
                log.debug("the database is away: %s", error)
