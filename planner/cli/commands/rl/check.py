"""``meshwright rl check``: read a folder back, and ask the framework's own configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import options as common
from planner.cli.output import OutputFormat, write_answer

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="What `rl plan --out` or `rl estimate --out` wrote.")]
Install = Annotated[
    bool, typer.Option("--install-validators", help="Install what is asked, where it is not here (50 MB).")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("check")(check)


def check(folder: Folder, install: Install = False, output: common.Output = OutputFormat.TABLE) -> None:
    """Read a folder of launch files back, and compose it by the framework's own configuration."""
    from planner.cli.render.tables import bullets
    from planner.rl.frameworks.verl.check import check_folder

    found = check_folder(folder, install=install)
    write_answer({"stages": list(found.stages)}, output, lambda: iter([bullets(list(found.stages))]))
