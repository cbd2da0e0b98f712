"""The store of plans: one database, SQLite by default, PostgreSQL by URL, the same code for both.

    address      which database, from a URL, $MESHWRIGHT_DATABASE or the data folder
    tables       the tables, typed
    migrations/  how an older database becomes a current one (Alembic)
    schema       create, upgrade, downgrade, refuse a newer schema
    engine       connections: WAL, foreign keys, time-outs, transactions
    watching     who wants to know of every transaction
    faults       what a driver says -> one clear error (errors)
    signature    which software computed a plan
    records      what comes back from the repository
    saving       writes, inside a transaction
    finding      reads
    backup       an SQLite database copied while in use, and brought back
    retention    what is old enough to go
    audit        who changed what, append-only
    service      what the service keeps: named documents, keys, requests
    sweeps       many questions asked as one, their cells
    repository   the ``Store``: save, find, list, label

Importing this package imports no SQLAlchemy; ``open_store`` does.
"""

from __future__ import annotations

from planner.store.opening import open_store, upgrade_store
from planner.store.signature import software_signature

__all__ = ["open_store", "software_signature", "upgrade_store"]
