"""``meshwright serve``: the REST service."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from api.commands.options import LogFormat, SettingsFile
from planner.cli.options import Database


class Authentication(StrEnum):
    """Who may ask."""

    NONE = "none"
    KEYS = "keys"


Host = Annotated[str, typer.Option("--host", help="Address to listen on; other than loopback only with --auth keys.")]
Port = Annotated[int, typer.Option("--port", help="TCP port; 0 takes a free one.")]
Auth = Annotated[
    Authentication | None,
    typer.Option("--auth", help="none: everybody on this machine (the default); keys: see token, and oidc in FILE."),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="HOST",
        help="Name that the service is asked by, besides localhost and --host; repeatable (default: "
        "$MESHWRIGHT_ALLOWED_HOSTS).",
    ),
]
Processes = Annotated[
    int | None, typer.Option("--processes", metavar="N", help="Processes that search while clients wait (default 2).")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", help="Long jobs run at once by this process (default 1); 0 = none.")
]

Agents = Annotated[bool, typer.Option("--mcp", help="Answer agents that speak the Model Context Protocol at /mcp.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


def serve(  # noqa: PLR0917  # a flag is an argument
    host: Host = "127.0.0.1",
    port: Port = 8642,
    database: Database = None,
    auth: Auth = None,
    allowed_host: AllowedHosts = None,
    processes: Processes = None,
    jobs: Jobs = None,
    mcp: Agents = False,
    settings: SettingsFile = None,
    log_format: LogFormat = None,
) -> None:
    """Serve plans over HTTP: /v1, /openapi.json, /livez, /readyz, /metrics."""
    from api.agents.sdk import require_sdk
    from api.serving import serve as run
    from api.settings import settings_from

    if mcp:
        require_sdk("--mcp")
    found = settings_from(
        settings,
        database=database,
        authentication=None if auth is None else auth is Authentication.KEYS,
        allowed_hosts=allowed_host or None,
        solver_processes=processes,
        job_concurrency=jobs,
        agents=mcp or None,
        log_format=None if log_format is None else log_format.value,
    )
    run(found, host, port)
