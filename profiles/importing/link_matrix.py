"""The cells of a printed link matrix: ``GPU0 GPU1 ... NIC0`` across and down, as smi tools print it.

Shared by nvidia-smi topo, mx-smi topo, npu-smi and rocm-smi.  Columns end where words that are no device begin (``CPU
Affinity``).  Cells stand apart by tabs or spaces; cells that a terminal glued together (``NODENODE``) are taken apart
where the tool's own words allow it.  Lines of several ranks (``srun --label``) are kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from profiles.importing.log_lines import LogLine

MAX_LABELS = 1024
_TRAILING = re.compile(r"\b(?:CPU|NUMA|Node|GPU NUMA)\s+(?:Affinity|ID)\b", re.IGNORECASE)
_SHELL_TRACE = re.compile(r"\s*\++ \S")
_BROKEN_OFF = re.compile(r"(?:Legend|NIC Legend)\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One row: the line it stands on, its label, one cell a column, and what follows the cells."""

    line: int
    label: str
    cells: tuple[str, ...]
    rest: tuple[str, ...]


@dataclass(slots=True)
class LinkMatrix:
    """One printed matrix.  ``short_rows``: lines that start like a row but have too few or unknown cells."""

    line: int
    columns: tuple[str, ...]
    rows: list[MatrixRow] = field(default_factory=list)
    short_rows: list[tuple[int, str]] = field(default_factory=list)
    affinity_columns: tuple[str, ...] = ()

    def cell(self, row: str, column: str) -> str | None:
        """The cell of a row and a column by label; None if either is not there."""
        if column not in self.columns:
            return None
        index = self.columns.index(column)
        return next((each.cells[index] for each in self.rows if each.label == row), None)


def read_matrices(
    lines: Iterable[LogLine], is_label: Callable[[str], bool], words: re.Pattern[str]
) -> Iterator[LinkMatrix]:
    """All matrices of a text.  ``is_label`` recognises the first column (``GPU0``); ``words`` one cell."""
    open_matrices: dict[int | None, LinkMatrix] = {}
    for line in lines:
        columns, affinity = header_labels(line.text, is_label)
        if columns:
            if line.rank in open_matrices:
                yield open_matrices.pop(line.rank)
            open_matrices[line.rank] = LinkMatrix(line.number, columns, affinity_columns=affinity)
            continue
        matrix = open_matrices.get(line.rank)
        if matrix is None or not line.text.strip() or _SHELL_TRACE.match(line.text):
            continue
        if _BROKEN_OFF.match(line.text.strip()):
            yield open_matrices.pop(line.rank)
        else:
            _add_row(matrix, line, words)
            if len(matrix.rows) == len(matrix.columns):
                yield open_matrices.pop(line.rank)
    yield from open_matrices.values()


def header_labels(text: str, is_label: Callable[[str], bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels of the device columns, and the affinity columns after them; both empty if it is no header."""
    found = _TRAILING.search(text)
    affinity: tuple[str, ...] = ()
    if found:
        affinity = tuple(" ".join(each.group().split()).lower() for each in _TRAILING.finditer(text))
        text = text[: found.start()]
    labels = text.split()
    if not labels or len(labels) > MAX_LABELS or not is_label(labels[0]) or len(set(labels)) != len(labels):
        return (), ()
    if not all(_NAME.match(label) for label in labels):
        return (), ()
    # "GPU0  X" of a single device is a row; so is any line whose later words are cells.
    if any(label in _CELLS or _NUMBERED_LINK.match(label) for label in labels[1:]):
        return (), ()
    return (tuple(labels), affinity) if (len(labels) > 1 or found or text[:1].isspace()) else ((), ())


_NAME = re.compile(r"[A-Za-z](?=\S*\d)[\w.:-]*\Z")
_NUMBERED_LINK = re.compile(r"NV\d+\Z")
_CELLS = frozenset(
    [
        "X",
        "SYS",
        "NODE",
        "PHB",
        "PXB",
        "PIX",
        "SOC",
        "HCCS",
        "HCCS_SW",
        "SIO",
        "UB",
        "MX",
        "ETH",
        "NA",
        "N/A",
        "OK",
        "NS",
        "CNS",
        "GNS",
        "PNS",
        "TNS",
        "DR",
        "U",
        "XGMI",
        "PCIE",
    ]
)


def _add_row(matrix: LinkMatrix, line: LogLine, words: re.Pattern[str]) -> None:
    tokens = line.text.replace("\xa0", " ").split()
    if tokens[0] not in matrix.columns:
        return
    if any(row.label == tokens[0] for row in matrix.rows):
        matrix.short_rows.append((line.number, f"{tokens[0]} stands here a second time"))
        return
    cells: list[str] = []
    position = 1
    while position < len(tokens) and len(cells) < len(matrix.columns):
        parts = _taken_apart(tokens[position], words)
        if not parts or len(cells) + len(parts) > len(matrix.columns):
            break
        cells += parts
        position += 1
    if len(cells) < len(matrix.columns):
        what = f"the row of {tokens[0]} has {len(cells)} of {len(matrix.columns)} cells"
        matrix.short_rows.append((line.number, what))
        return
    matrix.rows.append(MatrixRow(line.number, tokens[0], tuple(cells), tuple(tokens[position:])))


def _taken_apart(token: str, words: re.Pattern[str]) -> list[str]:
    """The cells in one token: usually one, several where a wrap glued them; none if it is no cell."""
    if len(token) > 4096:
        return []
    parts: list[str] = []
    start = 0
    while start < len(token):
        match = words.match(token, start)
        if not match or match.end() == start:
            return []
        parts.append(match.group())
        start = match.end()
    return parts
