"""``meshwright worker``: run the jobs of a database, here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.commands.options import LogFormat
from planner.cli.options import Database

GIB = 2**30

Concurrency = Annotated[int, typer.Option("--concurrency", metavar="N", help="Solves at once.")]
MemoryLimit = Annotated[
    float | None,
    typer.Option("--memory-limit", metavar="GIB", help="Memory of one solve; default 3/4 of the machine, shared out."),
]
Longest = Annotated[
    float, typer.Option("--longest", metavar="SECONDS", help="A search still running then ends with its best plan.")
]
Lease = Annotated[
    float, typer.Option("--lease", metavar="SECONDS", help="A worker silent for so long is dead; its jobs run again.")
]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="The service's settings; database, tracing and log format count."),
]
Drain = Annotated[
    float, typer.Option("--drain", metavar="SECONDS", help="Time for running jobs to finish after SIGTERM.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker")(worker)


def worker(  # noqa: PLR0917  # a flag is an argument
    database: Database = None,
    concurrency: Concurrency = 1,
    memory_limit: MemoryLimit = None,
    longest: Longest = 3600.0,
    lease: Lease = 20.0,
    drain: Drain = 20.0,
    settings: SettingsFile = None,
    log_format: LogFormat = None,
) -> int:
    """Run the long jobs of a database until SIGTERM or Ctrl-C; any number of workers may share one."""
    from api.settings import settings_from
    from api.worker.command import run_worker
    from api.worker.settings import WorkerSettings
    from planner.cli.problem_inputs import positive

    for value, flag in ((memory_limit, "--memory-limit"), (longest, "--longest"), (lease, "--lease")):
        positive(value, flag)
    positive(drain or None, "--drain")
    form = None if log_format is None else log_format.value
    known = settings_from(settings, database=database, log_format=form)
    wanted = WorkerSettings(
        database_url=known.database,
        concurrency=concurrency,
        memory_limit_bytes=0 if memory_limit is None else int(memory_limit * GIB),
        longest_solve_s=longest,
        lease_s=lease,
        heartbeat_s=lease / 5,
        drain_s=drain,
        log_format=known.log_format,
        tracing=None if known.tracing is None else known.tracing.model_dump(mode="json"),
    )
    return run_worker(wanted)
