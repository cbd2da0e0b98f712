"""``meshwright db prune``: remove what the service has kept long enough, now."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from api.commands.options import SettingsFile
from planner.cli.options import Database, Output
from planner.cli.output import OutputFormat, write_answer
from planner.errors import Conflict

KeyDays = Annotated[int | None, typer.Option("--keys-days", metavar="N", help="Keep idempotency keys so long.")]
JobDays = Annotated[int | None, typer.Option("--jobs-days", metavar="N", help="Keep jobs so long after their end.")]
SweepDays = Annotated[
    int | None, typer.Option("--sweeps-days", metavar="N", help="Keep sweeps so long after their end.")
]
ApiKeyDays = Annotated[
    int | None, typer.Option("--api-keys-days", metavar="N", help="Keep expired and revoked API keys so long.")
]
AuditDays = Annotated[int | None, typer.Option("--audit-days", metavar="N", help="Keep the audit trail so long.")]


def register(app: typer.Typer) -> None:
    """Add the command to the group ``db``."""
    group = next(each.typer_instance for each in app.registered_groups if each.name == "db")
    if group is not None:
        group.command("prune")(prune)


def prune(  # noqa: PLR0917  # a flag is an argument
    keys_days: KeyDays = None,
    jobs_days: JobDays = None,
    sweeps_days: SweepDays = None,
    api_keys_days: ApiKeyDays = None,
    audit_days: AuditDays = None,
    settings: SettingsFile = None,
    database: Database = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove old jobs, sweeps, keys and audit events; plans stay.  A running service does the same."""
    from api.commands.on_record import done_here
    from api.jobs.dbos_board import DbosBoard
    from api.retention import RetentionSettings
    from api.retention import prune as remove
    from api.settings import settings_from
    from planner.store import open_store
    from planner.store.address import database_url, jobs_path, sqlite_path
    from profiles.validation import read_document

    known = settings_from(settings, database=database)
    days = {
        "idempotency_keys_days": keys_days,
        "jobs_days": jobs_days,
        "sweeps_days": sweeps_days,
        "api_keys_days": api_keys_days,
        "audit_days": audit_days,
    }
    said = {name: value for name, value in days.items() if value is not None}
    kept = read_document(RetentionSettings, {**known.retention.model_dump(), **said}, "--keys-days, --jobs-days")
    path = sqlite_path(database_url(known.database))
    with ExitStack() as stack:
        store = stack.enter_context(open_store(known.database))
        jobs = path is None or jobs_path(path).exists()
        board = stack.enter_context(DbosBoard.open(known.database)) if jobs else None
        removed = remove(store, board, kept, on_record=done_here("db prune", ""))
    if removed is None:
        raise Conflict("a running service is removing what is old just now", hint="try again later")
    counts = removed.model_dump()
    words = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    write_answer(counts, output, lambda: [f"Removed: {words}."])
