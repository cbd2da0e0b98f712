"""``meshwright check``: whether the back-end accepts this folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.errors import BackEndRefused

if TYPE_CHECKING:
    from planner.backends.folders.report import CheckReport

Directories = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders that `emit` wrote.")]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="NAME[==VERSION]",
        help="Ask this validator of the back-end or launcher, installing it first where it is missing. Repeat for"
        " more. Without it, those that are installed are asked.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(directories: Directories, wanted: With = None, output: flags.Output = OutputFormat.TABLE) -> None:
    """Check emitted folders: unchanged, readable, legal by our rules and by the back-end's own parser.  Exit code 8."""
    from planner.backends.checking.emitted import read_folder
    from planner.backends.folders.catalogue import parse_requirement
    from planner.backends.folders.report import Checker

    requirements = [parse_requirement(text) for text in wanted or []]
    folders = [read_folder(directory) for directory in directories]
    with Checker(requirements) as checker:
        reports = [checker.check(folder) for folder in folders]
    data = [report_data(report) for report in reports]
    lines = [line for report in reports for line in report_lines(report)]
    write_answer(data[0] if len(data) == 1 else {"checks": data}, output, lambda: lines)
    refused = [report for report in reports if not report.ok]
    if refused:
        count = sum(len(each.findings) + sum(not verdict.accepted for verdict in each.verdicts) for each in refused)
        raise BackEndRefused(
            f"{count} finding{'s' if count > 1 else ''} in the launch files",
            where=", ".join(str(report.folder.path) for report in refused),
            hint="emit the plan again; `meshwright plan --backend B` finds a plan that B can run",
        )


def report_data(report: CheckReport) -> dict[str, Any]:
    """What a program wants to know."""
    return {
        "directory": str(report.folder.path),
        "backend": report.folder.backend,
        "release": report.folder.manifest.get("release"),
        "plan_id": report.folder.manifest.get("plan_id"),
        "ok": report.ok,
        "findings": [
            {"rule": each.rule, "message": each.message, "source": each.source, "where": each.where}
            for each in report.findings
        ],
        "validators": [
            {
                "name": each.validator,
                "version": each.version,
                "accepted": each.accepted,
                "stage": each.stage,
                "message": each.message,
                "facts": dict(each.facts),
                "wall_s": round(each.wall_s, 3),
            }
            for each in report.verdicts
        ],
        "not_asked": [
            {"name": each.validator, "version": each.version, "reason": each.reason} for each in report.not_asked
        ],
    }


def report_lines(report: CheckReport) -> list[str]:
    """The same for a person."""
    lines = [f"{each.rule}: {each.message}  ({each.source})" for each in report.findings]
    if not report.findings:
        lines = [f"{report.folder.path}: unchanged, readable, and legal for {report.folder.backend}"]
    for verdict in report.verdicts:
        said = "accepts" if verdict.accepted else f"refuses ({verdict.stage}): {verdict.message}"
        lines.append(f"  {verdict.validator} {verdict.version} {said}  [{verdict.wall_s:.2f} s]")
        if verdict.facts.get("lacking"):
            lines.append(f"    {verdict.facts['lacking']}")
    lines += [f"  {each.validator} {each.version} was not asked: {each.reason}" for each in report.not_asked]
    return lines
