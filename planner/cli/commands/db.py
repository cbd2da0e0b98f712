"""``meshwright db``: the plan database itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import Database, Output
from planner.cli.output import OutputFormat, write_answer

Copy = Annotated[Path, typer.Argument(metavar="FILE", help="The copy.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="The plan database.", no_args_is_help=True, rich_markup_mode=None)
    group.command("upgrade")(upgrade)
    group.command("backup")(backup)
    group.command("restore")(restore)
    app.add_typer(group, name="db")


def upgrade(database: Database = None, output: Output = OutputFormat.TABLE) -> None:
    """Bring the database to the schema of this release; harmless when it is there already."""
    from planner.store import upgrade_store

    revision = upgrade_store(database)
    write_answer({"revision": revision}, output, lambda: [f"The plan database has schema {revision}."])


def backup(copy: Copy, database: Database = None, output: Output = OutputFormat.TABLE) -> None:
    """Copy an SQLite database, its jobs beside it, while others use it."""
    from planner.store.backup import backup_store

    files = [str(path) for path in backup_store(copy, database)]
    write_answer({"files": files}, output, lambda: [f"Written: {', '.join(files)}."])


def restore(copy: Copy, database: Database = None, output: Output = OutputFormat.TABLE) -> None:
    """Bring a copy back where no database is; older schemas are then upgraded as usual."""
    from planner.store.backup import restore_store

    files = [str(path) for path in restore_store(copy, database)]
    write_answer({"files": files}, output, lambda: [f"Written: {', '.join(files)}."])
