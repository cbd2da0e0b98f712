"""``meshwright check``: would the back-end accept this folder?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.errors import TargetRefused

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `emit` wrote.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(directory: Directory, output: flags.Output = OutputFormat.TABLE) -> None:
    """Check an emitted folder: unchanged, readable, and legal for its back-end.  Exit code 8 when it is not."""
    from planner.emit.check import check_directory
    from planner.emit.write import read_manifest

    manifest = read_manifest(directory)
    findings = check_directory(directory)
    data = {
        "directory": str(directory),
        "target": manifest["target"],
        "plan_id": manifest.get("plan_id"),
        "ok": not findings,
        "findings": [
            {"rule": each.rule, "message": each.message, "source": each.source, "where": each.where}
            for each in findings
        ],
    }
    lines = [f"{each.rule}: {each.message}  ({each.source})" for each in findings]
    fine = f"{directory}: unchanged, readable, and legal for {manifest['target']}"
    write_answer(data, output, lambda: lines or [fine])
    if findings:
        raise TargetRefused(
            f"{len(findings)} finding{'s' if len(findings) > 1 else ''} in the launch files",
            where=str(directory),
            hint="emit the plan again; a plan that the target cannot run needs --target in `meshwright plan`",
        )
