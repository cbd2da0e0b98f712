"""``meshwright mcp``: the planner as tools of agents, over standard input and output."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.options import SettingsFile
from planner.cli.options import Database, Server
from planner.errors import Conflict

if TYPE_CHECKING:
    from api.settings import Settings

Processes = Annotated[
    int | None,
    typer.Option("--processes", metavar="N", help="Processes that search while the agent waits (default 2)."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp")(mcp)


def mcp(
    server: Server = None,
    database: Database = None,
    processes: Processes = None,
    settings: SettingsFile = None,
) -> None:
    """Answer an agent that speaks the Model Context Protocol, on this machine or through the service at --server."""
    import asyncio

    from api.agents.sdk import require_sdk
    from planner.operations.service import SERVER_VARIABLE

    require_sdk("meshwright mcp")
    if server and database is not None:
        raise Conflict(
            "--server and --database name two places to look for plans", where="--database", hint="drop one of them"
        )
    address = server if server is not None or database is not None else os.environ.get(SERVER_VARIABLE)
    if address:
        asyncio.run(_through(address))
        return
    from api.settings import settings_from

    _here(settings_from(settings, database=database, solver_processes=processes))


async def _through(address: str) -> None:
    """Answer from a service elsewhere."""
    from api.agents.door import door_to
    from api.agents.stdio import answer_on_stdio

    async with door_to(address, os.environ.get("MESHWRIGHT_API_KEY")) as door:
        await answer_on_stdio(door)


def _here(settings: Settings) -> None:
    """Answer from a service in this process, which listens nowhere."""
    import asyncio

    from api.agents.door import door_of
    from api.agents.stdio import answer_on_stdio
    from api.app import create_app
    from api.telemetry.logs import configure_logging
    from api.worker.embedded import open_board
    from planner.store import open_store
    from planner.store.address import database_url

    configure_logging(settings.log_format)
    open_store(settings.database).close()

    async def answer() -> None:
        async with door_of(create_app(settings, board)) as door:
            await answer_on_stdio(door)

    with open_board(
        database_url(settings.database), concurrency=settings.job_concurrency, log_format=settings.log_format
    ) as board:
        asyncio.run(answer())
