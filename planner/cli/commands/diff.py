"""``meshwright diff``: how two plans differ."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import opened_service

First = Annotated[str, typer.Argument(metavar="A", help="A plan: stored id, prefix, label, file or emitted folder.")]
Second = Annotated[str, typer.Argument(metavar="B", help="The plan to compare with it.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff")(diff)


def diff(
    a: First,
    b: Second,
    database: flags.Database = None,
    server: flags.Server = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Strategy, stages, time and memory of two plans, term by term."""
    from planner.cli.render.comparison import diff_report
    from planner.operations.diff import DIFF, DiffRequest

    with opened_service(server, database) as service:
        difference = service.call(DIFF, DiffRequest(a=a, b=b))
    write_answer(difference.model_dump(mode="json"), output, lambda: diff_report(difference))
