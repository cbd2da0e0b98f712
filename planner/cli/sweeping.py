"""Running a sweep: its cells answered, stored one by one, printed whole, even when it was cut short."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from planner.cli.failure import Interrupted
from planner.cli.output import OutputFormat, talk, write_answer, write_stdout
from planner.cli.progress import counted_progress
from planner.errors import BudgetSpent, DocumentInvalid, MeshwrightError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.sweep.question import SweepQuestion
    from planner.operations.service import Service
    from planner.operations.sweep import SweepAsked


class SweepOutput(StrEnum):
    """What every command prints, and csv for spreadsheets."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


def answer_sweep(
    service: Service, question: SweepQuestion, asked: SweepAsked, *, quiet: bool, output: SweepOutput
) -> None:
    """Plan, keep and print.

    Raises, after what is known was printed: Interrupted, what the executor, the database and the service raise,
    BudgetSpent when no cell could be decided, DocumentInvalid when none is a question, MeshwrightError when cells
    failed.
    """
    from planner.operations.sweep import SWEEP

    talk(f"checked: {question.num_cells:,} cells", quiet=quiet)
    start_s = time.perf_counter()
    with counted_progress("planning", quiet=quiet) as progress:
        found = service.call(SWEEP, asked, progress=progress)
    if found.rows:
        print_sweep(in_own_words(found.rows, question), time.perf_counter() - start_s, output)
        talk(found.kept, quiet=quiet)
    if isinstance(found.ended, KeyboardInterrupt):
        done = sum(row["outcome"] != "missing" for row in found.rows)
        what = f"interrupted; {done:,} of {question.num_cells:,} cells are answered"
        raise Interrupted(what, hint=found.goes_on) from None
    if found.ended is not None:
        raise found.ended
    judge(found.rows)


def in_own_words(rows: Sequence[dict[str, Any]], question: SweepQuestion) -> list[dict[str, Any]]:
    """Lines that call models and clusters as the command does: by the path of a file, not by the name inside."""
    words: dict[str, dict[str, str]] = {}
    for name, said in (("model", question.models), ("cluster", question.clusters)):
        theirs, ours = dict.fromkeys(row[name] for row in rows), dict.fromkeys(said)
        words[name] = dict(zip(theirs, ours, strict=True)) if len(theirs) == len(ours) else {}
    return [{**row, **{name: words[name].get(row[name], row[name]) for name in words}} for row in rows]


def print_sweep(rows: Sequence[dict[str, Any]], wall_s: float, output: SweepOutput) -> None:
    """The cells in the form that was asked for, and a count."""
    from planner.answers.sweep.table import csv_text, summary

    if output is SweepOutput.CSV:
        write_stdout(csv_text(rows))
        return
    data = {"cells": rows, "summary": {**summary(rows), "wall_s": wall_s}}
    write_answer(data, OutputFormat(output.value), lambda: _tables(data))


def _tables(data: dict[str, Any]) -> Iterator[RenderableType]:
    from planner.cli.render.sweep import sweep_report

    return sweep_report(data)


def judge(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise where the sweep as a whole is no answer: MeshwrightError, DocumentInvalid, BudgetSpent."""
    kinds = {row["outcome"] for row in rows}
    failed = [row for row in rows if row["outcome"] == "failed"]
    first = failed[0] if failed else rows[0]
    if failed:
        where = f"{first['model']} on {first['num_devices']:,} x {first['cluster']}"
        what = f"{len(failed):,} of {len(rows):,} cells failed, the first: {first['reason']}"
        raise MeshwrightError(what, where=where, hint=first["hint"])
    if kinds == {"refused"}:
        raise DocumentInvalid(f"no cell can be planned: {first['reason']}", where=first["where"], hint=first["hint"])
    if kinds <= {"refused", "undecided"}:
        raise BudgetSpent(
            "no cell was decided within its time limit", where="--time-limit", hint="allow more time for each"
        )
