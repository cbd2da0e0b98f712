"""``meshwright sensitivity``: how much a plan depends on numbers that may be wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.errors import DocumentInvalid
from planner.operations.service import SERVICE_LIMITS, opened_service

Changes = Annotated[str, typer.Option("--changes", metavar="P,...", help="Changes of each input in percent.")]
NoReplan = Annotated[bool, typer.Option("--no-replan", help="Only estimate the plan's strategy; no new searches.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sensitivity")(sensitivity)


def sensitivity(  # noqa: PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    changes: Changes = "-20,-10,10,20",
    no_replan: NoReplan = False,
    time_limit: flags.TimeLimit = None,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Speed and choice under wrong inputs: compute, links, memory, batch, up and down."""
    fractions = parse_changes(changes)
    from planner.cli.planning import search_options
    from planner.cli.progress import counted_progress
    from planner.cli.render.comparison import sensitivity_report
    from planner.operations.sensitivity import SENSITIVITY, SensitivityRequest

    asked = SensitivityRequest(plan=plan, changes=fractions, replan=not no_replan)
    search, limited = search_options(0, time_limit, 0), {"--time-limit": time_limit is not None}
    with (
        opened_service(server, database, only_here=limited, instead=SERVICE_LIMITS) as service,
        counted_progress("estimating" if no_replan else "re-planning", quiet=quiet) as progress,
    ):
        result = service.call(SENSITIVITY, asked, search=search, progress=progress)
    write_answer(result.model_dump(mode="json"), output, lambda: sensitivity_report(result))


def parse_changes(text: str) -> list[float]:
    """``-20,10`` as fractions, without repetition.  Raises DocumentInvalid."""
    values = []
    for part in text.split(","):
        word = part.strip().removesuffix("%").strip()
        try:
            value = float(word) / 100
        except ValueError:
            raise DocumentInvalid(
                f"{part.strip()!r} is not a percentage", where="--changes", hint="write it as -20,-10,10,20"
            ) from None
        values.append(value)
    return list(dict.fromkeys(values))
