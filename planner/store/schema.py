"""The database schema that this release needs: create, upgrade, downgrade, or refuse.

- A fresh database gets the tables of ``tables`` at once (milliseconds, without importing Alembic) and the stamp of
  the newest migration.  A contract test proves that the migrations build exactly the same schema.
- An older SQLite file is one user's: it is upgraded when opened.  An older PostgreSQL database is shared with other
  releases, so ``meshwright db upgrade`` has to be said.
- A newer schema is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from planner.store.engine import reading, shown, writing
from planner.store.errors import StoreCorrupt, StoreOutdated, StoreTooNew
from planner.store.tables import Base

if TYPE_CHECKING:
    from alembic.config import Config

HEAD_REVISION = "0006"
"""The newest migration; a contract test compares it with ``migrations/versions``."""

MIGRATIONS = Path(__file__).parent / "migrations"

# Any constant: processes that create the schema at the same time wait for each other on it.
_CREATION_LOCK = 0x6D657368


def ensure_schema(engine: Engine) -> None:
    """Make the database ready, or raise StoreOutdated, StoreTooNew, StoreCorrupt or another StoreError."""
    with reading(engine) as connection:
        revision = current_revision(connection)
    if revision == HEAD_REVISION:
        return
    if revision is None:
        create_schema(engine)
        return
    where = shown(engine)
    if revision not in known_revisions():
        raise StoreTooNew(
            f"the plan database has schema {revision}, this release knows up to {HEAD_REVISION}",
            where=where,
            hint="upgrade meshwright, or use another database",
        )
    if engine.dialect.name != "sqlite":
        raise StoreOutdated(
            f"the plan database has schema {revision}, this release needs {HEAD_REVISION}",
            where=where,
            hint="run `meshwright db upgrade`",
        )
    upgrade(engine)


def create_schema(engine: Engine) -> None:
    """Create all tables in one transaction; harmless when another process was faster."""
    with writing(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
        if current_revision(connection) is not None:
            return
        foreign = set(inspect(connection).get_table_names()) & set(Base.metadata.tables)
        if foreign:
            raise StoreCorrupt(
                f"the database has tables of other origin: {', '.join(sorted(foreign))}",
                where=shown(engine),
                hint="give Meshwright a database of its own",
            )
        Base.metadata.create_all(connection, checkfirst=False)
        connection.execute(
            text(
                "CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL, "
                "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
            )
        )
        connection.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": HEAD_REVISION})


def current_revision(connection: Connection) -> str | None:
    """The migration that the database is at; None for a database without our tables."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Run the migrations up to ``revision``, in one transaction."""
    from alembic import command

    with writing(engine) as connection:
        command.upgrade(alembic_config(connection), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Run the migrations down to ``revision`` (``base`` = no tables), in one transaction.  Loses data."""
    from alembic import command

    with writing(engine) as connection:
        command.downgrade(alembic_config(connection), revision)


def known_revisions() -> tuple[str, ...]:
    """Every migration of this release, newest first."""
    from alembic.script import ScriptDirectory

    return tuple(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration without an ini file; ``connection`` joins a running transaction."""
    from alembic.config import Config

    config = Config()
    # Config interpolates %, which may be part of a path.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    if connection is not None:
        config.attributes["connection"] = connection
    return config
