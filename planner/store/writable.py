"""A check that something could be stored now: stores nothing, because it is made every few seconds.

A service whose database can only be read would be sent requests that it must refuse; who asks here hears of it before
they do, and hears that it is over without a request that tries.
"""

from __future__ import annotations

import os

from sqlalchemy import Connection, text

from planner.store.address import jobs_path, sqlite_path
from planner.store.errors import StoreFull, StoreReadOnly

LEAST_FREE_BYTES = 2**20
"""Less is a full disk: a few plans and the log that is written before them take as much."""


def check_writable(connection: Connection) -> None:
    """Raises StoreReadOnly, StoreFull."""
    path = sqlite_path(connection.engine.url.render_as_string(hide_password=False))
    if path is not None:
        for place in (path, jobs_path(path), path.parent):
            if place.exists() and not os.access(place, os.W_OK):
                raise StoreReadOnly("the plan database is read-only", where=str(place), hint="make it writable")
        disk = os.statvfs(path.parent)
        # Some network file systems do not say how large they are.
        if disk.f_blocks and disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
            raise StoreFull("no space is left for the plan database", where=str(path.parent), hint="free disk space")
    elif (
        connection.dialect.name == "postgresql"
        and connection.execute(text("SHOW transaction_read_only")).scalar() == "on"
    ):
        raise StoreReadOnly("the PostgreSQL server is read-only", hint="connect to the primary, not to a standby")
