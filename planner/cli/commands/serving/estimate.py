"""``meshwright serving estimate``: what a given deployment gives."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.commands.serving.question import NOTHING_ASKED, QuestionFile, ServingFlags, question_of
from planner.cli.output import OutputFormat, write_answer
from planner.cli.workload_flags import with_flags
from planner.operations.service import opened_service

Layout = Annotated[
    str,
    typer.Option(
        "--layout", metavar="GROUPS", help="2*tp=4,ep=4 or prefill:2*tp=2+decode:1*tp=4: instances and their fields."
    ),
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("estimate")(estimate)


@with_flags("said", ServingFlags)
def estimate(  # a flag is an argument
    layout: Layout,
    file: QuestionFile = None,
    said: ServingFlags = NOTHING_ASKED,
    server: flags.Server = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """What a deployment gives under a traffic, and whether its engine runs it; --engine names one (default vllm)."""
    from planner.cli.commands.serving.tables import estimate_tables
    from planner.errors import DocumentInvalid
    from planner.operations.serving import SERVING_ESTIMATE, ServingEstimateRequest
    from planner.serving.text import parse_groups

    engines = said.engine or ["vllm"]
    if len(engines) != 1:
        raise DocumentInvalid("an estimate is about one engine", where="--engine", hint="name one")
    name, _, release = engines[0].partition("==")
    more = {"engine": name, "release": release or None, "groups": parse_groups(layout, "--layout")}
    asked = question_of(file, said, ServingEstimateRequest, **more)
    with opened_service(server) as service:
        found = service.call(SERVING_ESTIMATE, asked)
    write_answer(found.model_dump(mode="json", exclude={"problem"}), output, lambda: estimate_tables(found))
