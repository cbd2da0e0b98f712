"""The rows of a CSV file: a reader with limits, which gives columns and numbered lines.

Byte order mark, CRLF, quoted fields with separators or line breaks inside, and an empty last column (a separator at
the end of each line) are understood.  Refused: more than ``MAX_COLUMNS`` columns, a field above 131,072 characters
(the csv module's own limit: mostly a quote that is never closed), and a file without the expected header.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from profiles.errors import DocumentInvalid
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, shown, whole_number
from profiles.importing.source_file import Head, SourceFile

MAX_COLUMNS = 4096
_HEAD_LINES = 200


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row: ``line`` is the line of the file, from 1, on which it begins."""

    line: int
    cells: tuple[str, ...]
    columns: dict[str, int]

    def __getitem__(self, column: str) -> str:
        """The cell under ``column`` without spaces around it; empty where there is no such column."""
        index = self.columns.get(column)
        return "" if index is None else self.cells[index].strip()

    def number(self, column: str, *, thousands: bool = False) -> float:
        """The finite number under ``column``.  Raises ValueError that names the column."""
        try:
            return finite_number(self[column], thousands=thousands)
        except ValueError as error:
            raise ValueError(f"column '{column}': {error}") from None

    def whole(self, column: str, *, thousands: bool = False) -> int:
        """The whole number under ``column``.  Raises ValueError that names the column."""
        try:
            return whole_number(self[column], thousands=thousands)
        except ValueError as error:
            raise ValueError(f"column '{column}': {error}") from None

    def optional_number(self, column: str) -> float | None:
        """As ``number``, None where the cell is empty or the column is not there."""
        return self.number(column) if self[column] else None

    def optional_whole(self, column: str) -> int | None:
        """As ``whole``, None where the cell is empty or the column is not there."""
        return self.whole(column) if self[column] else None


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV file behind its header.  ``columns`` gives each name's first position."""

    header: tuple[str, ...]
    columns: dict[str, int]
    header_line: int
    _raw: Iterator[tuple[int, list[str]]]

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return all(name in self.columns for name in names)

    def rows(self, imported: Imported) -> Iterator[CsvRow]:
        """The rows, once; blank lines are passed over, rows with a wrong number of columns reported as bad."""
        width = len(self.header)
        for line, raw in self._raw:
            if not raw or (len(raw) == 1 and not raw[0].strip()):
                continue
            cells = raw
            if len(raw) == width + 1 and not raw[-1].strip():
                cells = raw[:-1]
            elif len(raw) == width - 1 and not self.header[-1]:
                cells = [*raw, ""]
            if len(cells) != width:
                imported.bad(line, f"{len(raw)} columns where the header has {width}", "is the file cut off here?")
                continue
            yield CsvRow(line, tuple(cells), self.columns)


def open_csv(
    file: SourceFile,
    *,
    delimiter: str = ",",
    required: Sequence[str] = (),
    is_header: Callable[[Sequence[str]], bool] | None = None,
) -> CsvTable:
    """The table in ``file``: its header is the first row that is not blank (and that ``is_header`` accepts, if given).

    Raises DocumentInvalid without a header, without one of the ``required`` columns, or above the limits.
    """
    raw = _raw_rows(file, delimiter)
    for line, cells in raw:
        names = tuple(cell.strip() for cell in cells)
        if not any(names) or (is_header is not None and not is_header(names)):
            continue
        columns: dict[str, int] = {}
        for index, name in enumerate(names):
            columns.setdefault(name, index)
        missing = [name for name in required if name not in columns]
        if missing:
            raise DocumentInvalid(
                f"the header has no column {', '.join(map(repr, missing))}",
                where=f"{file.where}:{line}",
                hint="check that this is the file that the tool wrote",
            )
        return CsvTable(names, columns, line, raw)
    raise DocumentInvalid("there is no header line", where=file.where, hint="check that the file is complete")


def head_rows(head: Head, delimiter: str = ",", limit: int = 1) -> list[list[str]]:
    """The first rows of a head that are not blank, cells stripped: for ``matches``.  Empty for anything unreadable."""
    lines = head.text.splitlines()[:_HEAD_LINES]
    found: list[list[str]] = []
    try:
        for cells in csv.reader((line + "\n" for line in lines if len(line) <= 65536), delimiter=delimiter):
            if any(cell.strip() for cell in cells):
                found.append([cell.strip() for cell in cells])
            if len(found) == limit:
                break
    except csv.Error:
        pass
    return found


def _raw_rows(file: SourceFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line on which each begins."""
    reader = csv.reader((line + "\n" for _, line in file.lines()), delimiter=delimiter)
    while True:
        begins = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DocumentInvalid(
                f"line {begins} cannot be read as CSV: {error}",
                where=f"{file.where}:{begins}",
                hint="look for a quote that is opened and never closed",
            ) from None
        if len(cells) > MAX_COLUMNS:
            raise DocumentInvalid(
                f"line {begins} has {len(cells):,} columns, beginning with {shown(cells[0])}",
                where=f"{file.where}:{begins}",
                hint=f"at most {MAX_COLUMNS:,} are read; check the separator, and that this is the right file",
            )
        yield begins, cells
