"""``meshwright serve``: the REST service."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from planner.cli.options import Database


class Authentication(StrEnum):
    """Who may ask."""

    NONE = "none"
    KEYS = "keys"


Host = Annotated[str, typer.Option("--host", help="Address to listen on; other than loopback only with --auth keys.")]
Port = Annotated[int, typer.Option("--port", help="TCP port; 0 takes a free one.")]
Auth = Annotated[Authentication, typer.Option("--auth", help="none: everybody on this machine; keys: see token.")]
Processes = Annotated[int, typer.Option("--processes", metavar="N", help="Processes that search while clients wait.")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", help="Long jobs run at once by this process; 0 = none.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


def serve(  # a flag is an argument
    host: Host = "127.0.0.1",
    port: Port = 8642,
    database: Database = None,
    auth: Auth = Authentication.NONE,
    processes: Processes = 2,
    jobs: Jobs = 1,
) -> None:
    """Serve plans over HTTP: /v1, /openapi.json, /livez, /readyz, /metrics."""
    from pydantic import ValidationError

    from api.document_check import findings_error
    from api.serving import serve as run
    from api.settings import Settings

    try:
        settings = Settings(
            database=database,
            authentication=auth is Authentication.KEYS,
            solver_processes=processes,
            job_concurrency=jobs,
        )
    except ValidationError as error:
        raise findings_error(error.errors(include_url=False, include_input=False, include_context=False)) from None
    run(settings, host, port)
