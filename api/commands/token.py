"""``meshwright token``: API keys of the service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from planner.cli.options import Database, Output
from planner.cli.output import OutputFormat, write_answer
from planner.errors import NotFound

Name = Annotated[str, typer.Option("--name", help="Whose key it is, in your own words.")]
ScopeFlag = Annotated[str, typer.Option("--scope", help="read, plan (and read), or admin (everything).")]
Days = Annotated[int | None, typer.Option("--days", metavar="N", help="Days until it expires (default: never).")]
Prefix = Annotated[str, typer.Argument(metavar="PREFIX", help="The key's prefix, as token list shows it.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "API keys of the service: create, list, revoke."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    group.command("create")(create)
    group.command("list")(list_keys)
    group.command("revoke")(revoke)
    app.add_typer(group, name="token")


def create(
    name: Name,
    scope: ScopeFlag = "plan",
    days: Days = None,
    database: Database = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Make a key.  It is shown once: only its hash is kept."""
    from api.access.api_keys import new_key
    from api.commands.on_record import done_here
    from planner.store import open_store

    key, record = new_key(name, scope, days)
    with open_store(database) as store:
        store.service().add_api_key(record, done_here("token create", record.prefix))
    expires = record.expires_at.isoformat() if record.expires_at else None
    data = {"key": key, "prefix": record.prefix, "scopes": list(record.scopes), "expires_at": expires}
    write_answer(data, output, lambda: [key, f"Authorization: Bearer {key[:12]}...; it is not shown again."])


def list_keys(database: Database = None, output: Output = OutputFormat.TABLE) -> None:
    """Every key, without its secret."""
    from planner.cli.render.tables import table
    from planner.store import open_store

    with open_store(database) as store:
        rows = [_row(record) for record in store.service().api_keys()]
    columns = ("prefix", "name", "scopes", "state", "created_at", "expires_at")
    cells = [tuple(str(row[name] or "") for name in columns) for row in rows]
    write_answer(rows, output, lambda: [table("", columns, cells)] if rows else ["There are no keys."])


def revoke(prefix: Prefix, database: Database = None, output: Output = OutputFormat.TABLE) -> None:
    """End a key; servers notice within seconds."""
    from api.commands.on_record import done_here
    from planner.store import open_store

    with open_store(database) as store:
        known = store.service().revoke_api_key(prefix, done_here("token revoke", prefix))
    if not known:
        raise NotFound("there is no such key", where=prefix, hint="see `meshwright token list`")
    write_answer({"prefix": prefix, "state": "revoked"}, output, lambda: [f"{prefix} is revoked."])


def _row(record: Any) -> dict[str, Any]:
    expired = record.expires_at is not None and record.expires_at <= datetime.now(UTC)
    state = "revoked" if record.revoked_at else "expired" if expired else "good"
    return {
        "prefix": record.prefix,
        "name": record.name,
        "scopes": ",".join(record.scopes),
        "state": state,
        "created_at": record.created_at.isoformat(),
        "expires_at": record.expires_at.isoformat() if record.expires_at else None,
    }
