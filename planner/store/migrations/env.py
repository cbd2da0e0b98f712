"""Alembic's connection to the database: the one that it is given, else the default address.

Needs no ``alembic.ini``: ``planner.store.schema`` builds the configuration.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from planner.store.address import database_url, prepare_directory
from planner.store.engine import make_engine, writing
from planner.store.tables import Base


def run(connection: Connection) -> None:
    """Run the chosen migrations on ``connection``, inside its transaction."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
    )
    context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    url = database_url(context.config.get_main_option("sqlalchemy.url"))
    prepare_directory(url)
    engine = make_engine(url)
    try:
        with writing(engine) as own:
            run(own)
    finally:
        engine.dispose()
