"""The tables in the output of ``nsys stats``: header and rows as cells, in any of its three layouts.

CSV: a header with commas.  Columns: a header line, then a ruler of dashes that fixes the columns.  Drawn: ``|`` between
cells and ``+---+`` lines.  A table ends at a blank line, at the next header, or at one of nsys's own messages.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

from profiles.importing.csv_rows import MAX_COLUMNS
from profiles.importing.imported import Imported
from profiles.importing.log_lines import log_lines
from profiles.importing.source_file import SourceFile

_RULER = re.compile(r"\s*-{3,}(?: {1,3}-{3,})+\s*\Z")
_DRAWN_RULE = re.compile(r"\s*\+(?:-+\+)+\s*\Z")
_MESSAGE = re.compile(r"\s*(?:Processing \[|\[\d+/\d+\]|\*\*|NOTICE|SKIPPED|Generating|Exporting|```|\*/|Using )")
_SPACES = re.compile(r"\s{2,}")
_CELL = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\))?\Z")
_FIRST = ("time", "total time", "total", "nvtx range", "range", "start")

_NAMES = {
    "average": "avg", "median": "med", "minimum": "min", "maximum": "max", "operations": "count",
    "instances": "count", "kern inst": "count", "range instances": "count", "total proj time": "total time",
    "proj avg": "avg", "proj med": "med", "proj min": "min", "proj max": "max", "proj stddev": "stddev",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its plain name and its unit as printed (empty where there is none)."""

    name: str
    unit: str


@dataclass(slots=True)
class Table:
    """One report: columns by plain name, and rows of cells with their line numbers."""

    columns: dict[str, int]
    units: dict[str, str]
    kind: str
    line: int
    rows: list[tuple[int, list[str]]]


def looks_like_report(line: str) -> bool:
    """Whether a line is the header of a report that is read."""
    cells = _header_cells(line)
    return bool(cells) and _kind(_plain(cells)) not in ("", "calls")


def tables(file: SourceFile, imported: Imported) -> Iterator[Table]:
    """Every report, one at a time; rows with too few cells are reported as bad."""
    current: Table | None = None
    layout, spans = "", [(0, 0)]
    for line in log_lines(file):
        text = line.text
        cells = _header_cells(text)
        columns = _plain(cells)
        if cells and _kind(columns):
            if current is not None:
                yield current
            current = _table(columns, line.number)
            layout, spans = _layout(text), []
        elif current is None:
            continue
        elif _RULER.match(text):
            spans = [match.span() for match in re.finditer(r"-+", text)]
        elif _DRAWN_RULE.match(text):
            continue
        elif not text.strip() or _MESSAGE.match(text):
            # A blank line may stand between header and rows of CSV.
            if current.rows or text.strip():
                yield current
                current = None
        else:
            _add_row(current, line.number, text, layout, spans, imported)
    if current is not None:
        yield current


def _add_row(
    table: Table, number: int, text: str, layout: str, spans: list[tuple[int, int]], imported: Imported
) -> None:
    width = len(table.units)
    row = _cells(text, layout, spans, width)
    if len(row) > width and layout == "csv":
        # A name that was printed without quotes keeps its commas.
        row = [*row[: width - 1], ",".join(row[width - 1 :])]
    if len(row) < width:
        imported.bad(number, f"{len(row)} cells where the header has {width}", "is the table cut off here?")
    else:
        table.rows.append((number, [cell.strip() for cell in row[:width]]))


def _table(columns: list[Column], line: int) -> Table:
    positions: dict[str, int] = {}
    units: dict[str, str] = {}
    for index, column in enumerate(columns):
        positions.setdefault(column.name, index)
        units[f"{index}"] = column.unit
    return Table(positions, units, _kind(columns), line, [])


def _kind(columns: list[Column]) -> str:
    """What a table of these columns is: kernels, range_kernels, projection, ranges, times, sizes, trace, calls."""
    names = {column.name for column in columns}
    if "total time" in names and "num calls" in names:
        return "calls"
    if {"start", "duration", "grdx", "name"} <= names:
        return "trace"
    if {"nvtx range", "kernel name", "total time", "count"} <= names:
        return "range_kernels"
    if {"range", "total range time", "total time", "count"} <= names:
        return "projection"
    if {"time", "total time", "count", "range"} <= names:
        return "ranges"
    if {"time", "total time", "count", "operation"} <= names:
        return "times" if "category" not in names else "calls"
    if {"total", "count", "operation"} <= names:
        return "sizes"
    return "kernels" if {"total time", "count", "name"} <= names else ""


def _plain(cells: list[str]) -> list[Column]:
    found = []
    for cell in cells:
        match = _CELL.match(cell.strip())
        name = match.group("name").casefold() if match else ""
        found.append(Column(_NAMES.get(name, name), (match.group("unit") or "") if match else ""))
    return found


def _header_cells(text: str) -> list[str]:
    """Cells of a line that may be a header; empty for any other line."""
    start = text.lstrip(" |\"'#/").casefold()
    if len(text) > 4000 or not start.startswith(_FIRST):
        return []
    cells = _cells(text.strip(), _layout(text), [], 0)
    return cells if 3 <= len(cells) <= MAX_COLUMNS else []


def _layout(text: str) -> str:
    if text.lstrip().startswith("|"):
        return "drawn"
    return "csv" if text.count(",") >= 2 and not _SPACES.search(text.strip()) else "columns"


def _cells(text: str, layout: str, spans: list[tuple[int, int]], width: int) -> list[str]:
    if layout == "drawn":
        inner = text.strip().removeprefix("|").removesuffix("|")
        return [cell.strip() for cell in inner.split("|", width - 1 if width else -1)]
    if layout == "csv":
        try:
            return next(csv.reader([text]), [])
        except csv.Error:
            return []
    if spans and len(spans) == width and _is_under(text, spans):
        return [*(text[start:end] for start, end in spans[:-1]), text[spans[-1][0] :]]
    return _SPACES.split(text.strip(), maxsplit=width - 1 if width else 0)


def _is_under(text: str, spans: list[tuple[int, int]]) -> bool:
    """Whether the row keeps to the columns of the ruler; copies into documents often shift it."""
    ends = all(text[end : end + 1] in ("", " ") for _, end in spans[:-1])
    return ends and all(start == 0 or text[start - 1 : start] in ("", " ") for start, _ in spans)
