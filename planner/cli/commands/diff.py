"""``meshwright diff``: how two plans differ."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import asked_service

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
    from planner.answers.diff import diff_plans
    from planner.cli.render.comparison import diff_report
    from planner.operations.plan_reference import is_plan_file, load_plan

    with asked_service(server, database) as service:
        if service is not None and not is_plan_file(a) and not is_plan_file(b):
            difference = service.diff(a, b)
        else:
            difference = diff_plans(load_plan(a, database, service), load_plan(b, database, service))
    write_answer(difference.model_dump(mode="json"), output, lambda: diff_report(difference))
