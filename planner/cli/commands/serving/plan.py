"""``meshwright serving plan``: the best deployment for a traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.commands.serving.question import NOTHING_ASKED, QuestionFile, ServingFlags, question_of
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.problem_inputs import positive
from planner.cli.workload_flags import with_flags
from planner.operations.service import opened_service

TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop searching after this; the gap is told.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the plan as JSON, for explain and emit.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("plan")(plan)


@with_flags("said", ServingFlags)
def plan(  # noqa: PLR0917  # a flag is an argument
    file: QuestionFile = None,
    said: ServingFlags = NOTHING_ASKED,
    time_limit: TimeLimit = None,
    out: Out = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """The best deployment: engine, layout, formats, limits, numbers of instances, prefill and decode apart or not."""
    from planner.cli.commands.serving.tables import plan_tables
    from planner.operations.reading import write_file
    from planner.operations.serving import SERVING_PLAN, ServingPlanRequest

    positive(time_limit, "--time-limit")
    asked = question_of(file, said, ServingPlanRequest, time_limit_s=time_limit)
    with opened_service(server) as service:
        found = service.call(SERVING_PLAN, asked)
    if out is not None:
        write_file(out, found.model_dump_json(indent=1) + "\n")
        talk(f"wrote {out}; next: meshwright serving explain {out}", quiet=quiet)
    data = {"plan_id": found.plan_id, **found.model_dump(mode="json", exclude={"problem"})}
    write_answer(data, output, lambda: plan_tables(found))
