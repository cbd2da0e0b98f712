"""Errors of the serving kernels' tables: ``python -m benchmarks.kernel_tables [SYSTEM ...]``.

``rows``: every 7th measured row, from a table of the others.  ``shapes``: every 7th shape, all its sizes.  ``shipped``:
all rows, from the thinned tables that ship.  ``borrowed``: all rows, by this device's roofline with the shipped
efficiencies of the nearest other device of its architecture; ``foreign``: of the nearest of another architecture, which
is what devices without tables get.  Each: number, median and 90th percentile of |predicted / measured - 1|.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from profiles.arrays import Array
from profiles.catalogue import load_device
from profiles.serving_kernels import by_nearness, rates_of_system, shipped, systems, wheel
from profiles.serving_kernels.grid import Table, distinct
from profiles.serving_kernels.lookup import ENGINES, LIBRARIES
from profiles.serving_kernels.wheel import Rows

Judged = Literal["rows", "shapes", "shipped", "borrowed", "foreign"]
EVERY = 7
MOST_ROWS = 2000
"""Rows of one table that are judged, evenly chosen."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one table, percent."""

    system: str
    place: str
    key: str
    judged: Judged
    number: int
    median: float
    p90: float

    def line(self) -> str:
        """One line of the printed table."""
        where = f"{self.system:20}{self.place:13}{self.key:32}"
        return f"{where}{self.judged:9}{self.number:6}{self.median:8.1f}{self.p90:8.1f}"


def errors_of(system: str, place: str, key: str, rows: Rows) -> Iterator[Errors]:
    """All judgements of one table that can be made."""
    for judged in get_args(Judged):
        wanted, table = _test(system, place, key, rows, judged)
        if table is None or not len(wanted.logs):
            continue
        step = -(-len(wanted.logs) // MOST_ROWS)
        off = np.abs(np.expm1(log_errors(table, wanted.chosen(slice(0, None, step)))))
        if len(off):
            yield Errors(
                system, place, key, judged, len(off), 100 * float(np.median(off)), 100 * float(np.quantile(off, 0.9))
            )


def _test(system: str, place: str, key: str, rows: Rows, judged: Judged) -> tuple[Rows, Table | None]:
    """What is predicted, from which table."""
    if judged in ("rows", "shapes"):
        shape = distinct(rows.shapes)[1]
        out = (np.arange(len(shape)) if judged == "rows" else shape) % EVERY == EVERY // 2
        return rows.chosen(out), None if out.all() or not out.any() else rows.chosen(~out).table()
    if judged == "shipped":
        return rows, shipped.table(system, place, key)
    own = load_device(systems()[system]["device"])
    for other in by_nearness(own)[1:]:
        same = load_device(systems()[other]["device"]).architecture == own.architecture
        table = shipped.table(other, place, key)
        if table is not None and same == (judged == "borrowed"):
            return rows, table
    return rows, None


def log_errors(table: Table, rows: Rows) -> Array:
    """log(predicted / measured) of each row whose window and skew the table has."""
    if rows.features == wheel.WEIGHT_SIDES:  # they are sizes of the table
        sizes = np.column_stack([rows.shapes, rows.sizes])
        return np.asarray(np.log(table.blended({"one": 1.0}).factor(*sizes.T)) - rows.logs)
    found: list[Array] = []
    first, shape = distinct(rows.shapes)
    for number, values in enumerate(rows.shapes[first]):
        wanted, chosen = dict(zip(rows.features, values, strict=True)), table
        for feature in {"window", "skew"} & set(wanted):
            chosen = chosen.only(feature, wanted.pop(feature))
        if len(chosen.shapes):
            mine = shape == number
            found.append(np.log(chosen.blended(wanted).factor(*rows.sizes[mine].T)) - rows.logs[mine])
    return np.concatenate(found) if found else np.zeros(0)


def main() -> None:
    """Print all errors of the named systems, or of all."""
    print(f"{'system':20}{'tables of':13}{'kernel':32}{'judged':9}{'rows':>6}{'median':>8}{'p90':>8}  (percent)")
    for system in sys.argv[1:] or systems():
        for place in (*ENGINES, *LIBRARIES):
            for key, rows in wheel.kernel_rows(system, place, rates_of_system(system)).items():
                for errors in errors_of(system, place, key, rows):
                    print(errors.line(), flush=True)


if __name__ == "__main__":
    main()
