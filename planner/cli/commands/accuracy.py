"""``meshwright accuracy``: prediction error on measured runs."""

from __future__ import annotations

import math
import os
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, talk, write_answer
from planner.errors import DocumentInvalid
from planner.operations.reading import read_text, write_bytes, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from planner.evidence.accuracy.figure import FigureFile
    from planner.evidence.accuracy.fitted_rows import FittedRows
    from planner.evidence.runs.truth import TruthRow


class GroupChoice(StrEnum):
    """What a group of rows has in common."""

    SOURCE = "source"
    DEVICE = "device"
    MODEL = "model"


class FigureChoice(StrEnum):
    """How figures are written."""

    SVG = "svg"
    PNG = "png"


Truth = Annotated[
    list[Path],
    typer.Argument(metavar="TRUTH.csv...", help="Measured runs, one row each (see docs/how-to/judge-accuracy.md)."),
]
By = Annotated[GroupChoice, typer.Option("--by", help="What a line of the tables stands for.")]
Fraction = Annotated[
    float | None,
    typer.Option("--calibrate-fraction", metavar="F", help="Calibrate on this part of each source, judge the rest."),
]
Fitted = Annotated[
    Path | None,
    typer.Option(
        "--fitted-rows",
        metavar="FILE",
        help="Ids of rows that chose constants of the cost model, one a line.  [default: the list of this release]",
    ),
]
Optimism = Annotated[
    bool,
    typer.Option("--optimism", help="Also search for a plan where tuned runs are known, and compare it with them."),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write the report as one HTML file.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="DIR", help="Also draw the figures into DIR.")]
Format = Annotated[FigureChoice, typer.Option("--format", help="Of the figures in DIR.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Also write the report as a Markdown page.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("accuracy")(accuracy)


def accuracy(  # noqa: PLR0913, PLR0917  # a flag is an argument
    truth: Truth,
    by: By = GroupChoice.SOURCE,
    calibrate_fraction: Fraction = None,
    fitted_rows: Fitted = None,
    optimism: Optimism = False,
    html: Html = None,
    plot: Plot = None,
    figure_format: Format = FigureChoice.SVG,
    markdown: Markdown = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Predict measured runs and show the errors: time, memory, ranking, out of memory.

    Files of serving points are known by their columns; of the options, --markdown and --output are theirs.
    """
    fraction = calibrate_fraction
    if fraction is not None and not (math.isfinite(fraction) and 0 < fraction < 1):
        raise DocumentInvalid(
            f"{fraction} is not a part of the rows", where="--calibrate-fraction", hint="give a number between 0 and 1"
        )
    if html is not None or plot is not None:
        from profiles.plots.style import require_matplotlib

        require_matplotlib("--html" if plot is None else "--plot")
    texts = {path: read_text(path) for path in truth}
    if _are_serving(texts):
        _serving(texts, markdown, output, quiet=quiet)
        return
    rows, groups = read_truth_files(truth)
    fitted = _fitted(fitted_rows)

    from planner.evidence.accuracy.report import assess, report_data

    talk(f"predicting {len(rows)} measured runs", quiet=quiet)
    data = report_data(assess(rows, groups, fraction, fitted, picks=optimism), by.value)
    _write_files(data, html, plot, figure_format, markdown)
    write_answer(data, output, lambda: _tables(data))


def _are_serving(texts: dict[Path, str]) -> bool:
    """Whether the files hold serving points; raises DocumentInvalid where only some do."""
    from planner.serving.evidence.truth import is_serving_truth

    serving = [is_serving_truth(text) for text in texts.values()]
    if any(serving) and not all(serving):
        raise DocumentInvalid(
            "some files hold serving points, others training runs",
            where=" ".join(str(path) for path in texts),
            hint="give the two kinds to a command each",
        )
    return all(serving)


def _serving(texts: dict[Path, str], markdown: Path | None, output: OutputFormat, *, quiet: bool) -> None:
    """Predict measured serving points and show the errors."""
    from planner.serving.evidence.report import assess, markdown_section, report_tables
    from planner.serving.evidence.truth import read_serving_truth

    rows = [row for path, text in texts.items() for row in read_serving_truth(text, str(path))]
    talk(f"predicting {len(rows)} measured serving points", quiet=quiet)
    report = assess(rows)
    if markdown is not None:
        write_file(markdown, markdown_section(report))
    tables = report_tables(report)
    data = {each.title: [dict(zip(each.columns, cells, strict=True)) for cells in each.rows] for each in tables}

    def shown() -> Iterable[RenderableType]:
        from planner.cli.render.tables import table

        for number, each in enumerate(tables):
            if number:
                yield ""
            yield table(each.title, each.columns, each.rows)

    write_answer(data, output, shown)


def read_truth_files(paths: list[Path]) -> tuple[list[TruthRow], dict[str, str]]:
    """Rows of all files, and the ranking groups found beside them.  Raises DocumentInvalid or NotFound."""
    from planner.evidence.accuracy.ranking import read_groups
    from planner.evidence.runs.truth import read_truth

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


def _fitted(path: Path | None) -> FittedRows:
    from planner.evidence.accuracy.fitted_rows import committed_fitted_rows, read_fitted_rows

    return committed_fitted_rows() if path is None else read_fitted_rows(read_text(path), str(path))


def _write_files(
    data: dict[str, Any], html: Path | None, plot: Path | None, choice: FigureChoice, markdown: Path | None
) -> None:
    """The files that were asked for; the figures are drawn once where they can be."""
    svgs: list[tuple[FigureFile, bytes]] = []
    figures: Sequence[FigureFile] = ()
    if html is not None or plot is not None:
        from planner.evidence.accuracy.plots.gallery import drawn_files

        if html is not None or choice is FigureChoice.SVG:
            svgs = list(drawn_files(data, "svg"))
        if plot is not None:
            files = svgs if choice is FigureChoice.SVG else list(drawn_files(data, "png"))
            for each, content in files:
                write_bytes(plot / each.file_name, content)
            figures = [each for each, _ in files]
            data["figures"] = [{"file": str(plot / each.file_name), "title": each.title} for each in figures]
    if html is not None:
        from planner.evidence.accuracy.html_page import html_page

        write_file(html, html_page(data, [(each, content.decode()) for each, content in svgs]))
    if markdown is not None:
        from planner.evidence.accuracy.markdown import accuracy_page

        beside = "" if plot is None else Path(os.path.relpath(plot, markdown.parent)).as_posix()
        write_file(markdown, accuracy_page(data, figures, beside))


def _tables(data: dict[str, Any]) -> Iterable[RenderableType]:
    from planner.cli.render.tables import table
    from planner.evidence.accuracy.report_tables import report_tables

    for number, each in enumerate(report_tables(data)):
        if number:
            yield ""
        yield table(each.title, each.columns, each.rows)
        yield each.sentence
