"""``meshwright rl accuracy``: predicted steps of RL against measured ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as common
from planner.cli.output import OutputFormat, talk, write_answer
from planner.operations.reading import read_text, write_file

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.rl.evidence.report import RlAccuracy

Truth = Annotated[list[Path], typer.Argument(metavar="FILE.csv...", help="Measured steps, by stage or whole.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write the page.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("accuracy")(accuracy)


def accuracy(
    files: Truth,
    markdown: Markdown = None,
    quiet: common.Quiet = False,
    output: common.Output = OutputFormat.TABLE,
) -> None:
    """How far predicted steps are from measured ones, and whether placements stand in the measured order."""
    from planner.rl.evidence import report
    from planner.rl.evidence.judge import judged
    from planner.rl.evidence.measured import read_measured
    from planner.rl.predict.engine import served_engine

    runs = [run for path in files for run in read_measured(read_text(path), str(path))]
    talk(f"{len(runs)} measured runs", quiet=quiet)
    found = report.rl_accuracy(judged(runs, served_engine))
    if markdown is not None:
        write_file(markdown, "\n".join(report.markdown(found)))
    write_answer(found.model_dump(mode="json"), output, lambda: _tables(found))


def _tables(found: RlAccuracy) -> Iterator[RenderableType]:
    from planner.answers.views.words import percent
    from planner.cli.render.tables import bullets, heading, table

    rows = [
        (
            line.source[-60:],
            str(line.runs),
            "" if line.median_error is None else percent(line.median_error),
            "" if line.median_ratio is None else f"{line.median_ratio:.2f}",
            f"{line.pairs_right} of {line.pairs}" if line.pairs else "",
        )
        for line in (found.judged, found.fit, *found.sources)
    ]
    yield table("", ("source", ">runs", ">median error", ">median ratio", ">pairs in order"), rows)
    yield heading("Not asked")
    yield bullets([f"{count} runs: {reason}" for reason, count in found.left_out.items()])
