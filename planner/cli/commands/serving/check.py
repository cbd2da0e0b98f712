"""``meshwright serving check``: whether a folder of ``serving emit`` starts what was planned."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.errors import BackEndRefused

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that serving emit wrote.")]
WithEngine = Annotated[
    bool, typer.Option("--with-engine", help="Ask the engine's own parser, installing it first where it is missing.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("check")(check)


def check(directory: Directory, with_engine: WithEngine = False, output: flags.Output = OutputFormat.TABLE) -> None:
    """Check an emitted folder: unchanged, read back equal, legal by the engine's rules and parser.  Exit code 8."""
    from planner.cli.render.tables import table
    from planner.serving.platforms.registry import check_folder

    stages = check_folder(directory, with_engine=with_engine)
    words = {True: "passed", False: "refused", None: "not asked"}
    rows = [(each.stage, words[each.passed], each.message) for each in stages]
    data = {"directory": str(directory), "stages": [asdict(each) for each in stages]}
    write_answer(data, output, lambda: [table("", ("check", "verdict", "what it says"), rows)])
    refused = [each for each in stages if each.passed is False]
    if refused:
        raise BackEndRefused(
            f"{refused[0].stage}: {refused[0].message}", where=str(directory), hint="emit the plan again"
        )
