"""Opening a store: ``open_store()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.store.address import database_url, prepare_directory

if TYPE_CHECKING:
    from planner.store.repository import Store


def open_store(url: str | None = None) -> Store:
    """Open the database at ``url`` (default: ``$MESHWRIGHT_DATABASE``, else the data folder); creates a fresh one.

    Use it as a context manager, or call ``close()``.  Errors: see ``planner.store.errors``.
    """
    address = database_url(url)
    prepare_directory(address)
    # Here and not at the top: SQLAlchemy costs 0.2 s, which commands without a database must not pay.
    from planner.store.repository import Store

    return Store.open(address)


def upgrade_store(url: str | None = None) -> str:
    """Bring the database at ``url`` to this release's schema (``meshwright db upgrade``); returns the revision."""
    address = database_url(url)
    prepare_directory(address)
    from planner.store import schema
    from planner.store.engine import make_engine

    engine = make_engine(address)
    try:
        schema.upgrade(engine)
    finally:
        engine.dispose()
    return schema.HEAD_REVISION
