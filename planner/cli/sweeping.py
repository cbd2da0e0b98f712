"""Running a sweep: its cells answered, stored one by one, printed whole, even when it was cut short."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from planner.cli.failure import Interrupted
from planner.cli.output import OutputFormat, talk, write_answer, write_stdout
from planner.cli.progress import counted_progress
from planner.errors import BudgetSpent, DocumentInvalid, MeshwrightError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.sweep.answer import Answer
    from planner.answers.sweep.executor import Executor
    from planner.answers.sweep.grid import Cell
    from planner.search.options import SearchOptions
    from planner.store.repository import Store

GO_ON = "the same command goes on from the database"


class SweepOutput(StrEnum):
    """What every command prints, and csv for spreadsheets."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where plans are kept, and the form of the answer."""

    database: str | None
    price_per_device_hour: float | None
    quiet: bool
    output: SweepOutput


def answer_sweep(cells: Sequence[Cell], search: SearchOptions, executor: Executor, wanted: Wanted) -> None:
    """Plan, keep and print.

    Raises, after what is known was printed: Interrupted, what the executor and the database raise, BudgetSpent when no
    cell could be decided, DocumentInvalid when none is a question, MeshwrightError when cells failed.
    """
    from planner.answers.sweep.answer import missing
    from planner.answers.sweep.table import lines
    from planner.store import open_store

    talk(f"checked: {len(cells):,} cells", quiet=wanted.quiet)
    start_s = time.perf_counter()
    done: dict[int, Answer] = {}
    with open_store(wanted.database) as store:
        ended = _collect(done, cells, search, executor, store, wanted.quiet)
        address = store.address
    rows = lines((done.get(cell.index) or missing(cell) for cell in cells), wanted.price_per_device_hour)
    print_sweep(rows, time.perf_counter() - start_s, wanted)
    talk(f"plans are stored in {address}; next: meshwright explain PLAN", quiet=wanted.quiet)
    if isinstance(ended, KeyboardInterrupt):
        raise Interrupted(f"interrupted; {len(done):,} of {len(cells):,} cells are answered", hint=GO_ON) from None
    if ended is not None:
        raise ended
    judge(rows)


def _collect(
    done: dict[int, Answer],
    cells: Sequence[Cell],
    search: SearchOptions,
    executor: Executor,
    store: Store,
    quiet: bool,
) -> MeshwrightError | KeyboardInterrupt | None:
    """Fill ``done``; what ended the sweep early, if anything."""
    from planner.answers.sweep.walk import answers

    try:
        with (
            counted_progress("planning", quiet=quiet) as progress,
            closing(answers(cells, search, store, executor)) as found,
        ):
            for answer in found:
                done[answer.cell.index] = answer
                if progress is not None:
                    progress(len(done), len(cells))
    except (MeshwrightError, KeyboardInterrupt) as error:
        return error
    return None


def print_sweep(rows: Sequence[dict[str, Any]], wall_s: float, wanted: Wanted) -> None:
    """The cells in the form that was asked for, and a count."""
    from planner.answers.sweep.table import csv_text, summary

    if wanted.output is SweepOutput.CSV:
        write_stdout(csv_text(rows))
        return
    data = {"cells": rows, "summary": {**summary(rows), "wall_s": wall_s}}
    write_answer(data, OutputFormat(wanted.output.value), lambda: _tables(data))


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
