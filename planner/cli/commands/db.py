"""``meshwright db``: the plan database itself."""

from __future__ import annotations

import typer

from planner.cli.options import Database, Output
from planner.cli.output import OutputFormat, write_answer


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="The plan database.", no_args_is_help=True, rich_markup_mode=None)
    group.command("upgrade")(upgrade)
    app.add_typer(group, name="db")


def upgrade(database: Database = None, output: Output = OutputFormat.TABLE) -> None:
    """Bring the database to the schema of this release; harmless when it is there already."""
    from planner.store import upgrade_store

    revision = upgrade_store(database)
    write_answer({"revision": revision}, output, lambda: [f"The plan database has schema {revision}."])
