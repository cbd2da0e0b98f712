"""``meshwright accuracy``: prediction error on measured runs."""

from __future__ import annotations

import math
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.reading import read_text, write_file
from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from planner.accuracy.truth import TruthRow


class GroupChoice(StrEnum):
    """What a group of rows has in common."""

    SOURCE = "source"
    DEVICE = "device"
    MODEL = "model"


Truth = Annotated[
    list[Path], typer.Argument(metavar="TRUTH.csv...", help="Measured runs (see docs/reference/accuracy.md).")
]
By = Annotated[GroupChoice, typer.Option("--by", help="How to group the rows.")]
Fraction = Annotated[
    float | None,
    typer.Option(
        "--calibrate-fraction", metavar="F", help="Fit one factor a source on this part; report on the rest too."
    ),
]
Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Also write the accuracy page.")]


TIME_COLUMNS = ("n", "mape", "median", "p90", "bias", "coverage", "const. MFU", "same source", "unmapped")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("accuracy")(accuracy)


def accuracy(
    truth: Truth,
    by: By = GroupChoice.SOURCE,
    calibrate_fraction: Fraction = None,
    markdown: Markdown = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Predict measured runs and show the errors: time, memory, ranking, out of memory."""
    fraction = calibrate_fraction
    if fraction is not None and not (math.isfinite(fraction) and 0 < fraction < 1):
        raise DocumentInvalid(
            f"{fraction} is not a part of the rows", where="--calibrate-fraction", hint="give a number between 0 and 1"
        )
    rows, groups = read_truth_files(truth)

    from planner.accuracy.markdown import accuracy_page
    from planner.accuracy.report import assess, report_data

    talk(f"predicting {len(rows)} measured runs", quiet=quiet)
    data = report_data(assess(rows, groups, fraction), by.value)
    if markdown is not None:
        write_file(markdown, accuracy_page(data))
    write_answer(data, output, lambda: _tables(data))


def read_truth_files(paths: list[Path]) -> tuple[list[TruthRow], dict[str, str]]:
    """Rows of all files, and the ranking groups found beside them.  Raises DocumentInvalid or NotFound."""
    from planner.accuracy.ranking import read_groups
    from planner.accuracy.truth import read_truth

    rows: list[TruthRow] = []
    groups: dict[str, str] = {}
    beside: dict[Path, None] = {}
    for path in paths:
        rows.extend(read_truth(read_text(path), str(path)))
        beside |= dict.fromkeys(sorted(path.parent.glob("ranking_groups*.csv")))
    for path in beside:
        groups |= read_groups(read_text(path), str(path))
    twice = [identity for identity, count in Counter(row.id for row in rows).items() if count > 1]
    if twice:
        raise DocumentInvalid(
            f"the files share row ids: {', '.join(twice[:5])}",
            where=" ".join(str(path) for path in paths),
            hint="give each row in one file only",
        )
    return rows, groups


def _tables(data: dict[str, Any]) -> Iterable[RenderableType]:
    from planner.accuracy.markdown import decimal, percent, time_cells
    from planner.cli.render.tables import table

    groups = data["groups"]
    yield table(
        "Step time",
        (data["by"], *(f">{name}" for name in TIME_COLUMNS)),
        [(*time_cells(group), str(group["unmapped"])) for group in groups],
    )
    yield ""
    yield table(
        "Ranking, memory, out of memory",
        (data["by"], ">groups", ">tau", ">regret", ">top 3", ">memory n", ">mape", ">bias", ">tp", ">fp", ">tn", ">fn"),
        [
            (
                group["group"],
                str(group["num_groups"]),
                decimal(group["kendall_tau"]),
                percent(group["regret"]),
                percent(group["top3_regret"]),
                str(group["memory"]["n"]),
                percent(group["memory"]["mape"]),
                percent(group["memory"]["bias"], signed=True),
                *(str(group["oom"][name]) for name in ("tp", "fp", "tn", "fn")),
            )
            for group in groups
        ],
    )
    if "calibration" in data:
        yield ""
        yield _calibration_table(data["calibration"])
    yield ""
    yield table(
        f"{data['unmapped']['n']} rows without a prediction",
        ("reason", ">rows"),
        [(reason, str(count)) for reason, count in data["unmapped"]["reasons"].items()],
    )


def _calibration_table(calibration: dict[str, Any]) -> RenderableType:
    from planner.accuracy.markdown import percent
    from planner.cli.render.tables import table

    return table(
        "One factor a source, on the rows that it has not seen",
        ("group", ">fitted", ">judged", ">median before", ">median after", ">mape before", ">mape after"),
        [
            (
                group["group"],
                str(group["num_fitted"]),
                str(group["calibrated"]["n"]),
                percent(group["uncalibrated"]["median_ape"]),
                percent(group["calibrated"]["median_ape"]),
                percent(group["uncalibrated"]["mape"]),
                percent(group["calibrated"]["mape"]),
            )
            for group in calibration["groups"]
            if group["calibrated"]["n"]
        ],
    )
