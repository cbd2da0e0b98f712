"""``meshwright emit``: launch files of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.emitting import LauncherChoice, emission_lines, parse_targets, write_target
from planner.cli.output import OutputFormat, write_answer

Target = Annotated[str, typer.Option("--target", "-t", metavar="T", help="megatron, deepspeed or native.")]
Launcher = Annotated[LauncherChoice, typer.Option("--launcher", help="Who starts the processes.")]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder to write; only an untouched emission is replaced.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("emit")(emit)


def emit(  # noqa: PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    target: Target,
    out: Out,
    launcher: Launcher = LauncherChoice.TORCHRUN,
    database: flags.Database = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Write the files that run a plan on a back-end."""
    names = parse_targets(target, "--target")
    from planner.cli.plan_reference import load_plan

    the_plan = load_plan(plan, database)
    made = [
        write_target(the_plan, name, launcher, out if len(names) == 1 else out / name, quiet=quiet) for name in names
    ]
    data = made[0] if len(made) == 1 else {"emissions": made}
    write_answer(data, output, lambda: [line for each in made for line in emission_lines(each)])
