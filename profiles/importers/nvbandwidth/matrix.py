"""The links that one matrix of nvbandwidth measures.

The description above each matrix says it all: ``memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)``.  The arrow is the
way of the data.  ``<->`` means that the opposite copy runs at the same time: the number is still one direction, except
in the ``Total`` matrices of v0.3 and later, which are the sum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number
from profiles.observations.records import LinkKind, LinkObservation, Scalar
from profiles.observations.timing import Statistic

DESCRIPTION = re.compile(
    r"(?P<before>[^\n]*?\b(?:CPU|GPU|PPU|[Aa]ll G[Pp][Uu]s)(?:\((?:row|column|col)\))?[^\n]*?)"
    r"\((?P<unit>GB/s|ns|us)\)\s*$"
)
_ENDS = re.compile(
    r"(?P<first>CPU|GPU|All G[Pp][Uu]s)(?:\((?P<first_axis>row|column)\))?"
    r"(?: ?(?P<arrow><->|<-|->) ?(?P<second>CPU|GPU|All G[Pp][Uu]s)(?:\((?P<second_axis>row|column)\))?)?"
)
_PART = re.compile(r"\b(Read1|Read2|Write1|Write2|Total)\b")
_GIGABYTE = 1e9
_SECONDS = {"ns": 1e-9, "us": 1e-6}


@dataclass(frozen=True, slots=True)
class Test:
    """One matrix: the test's name, its description, and how it was measured."""

    name: str
    description: str
    size_bytes: int | None = None
    statistic: Statistic = "unknown"
    num_samples: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its place in the matrix, its text, where errors find it, and the row that observations carry."""

    row: int
    column: int
    text: str
    where: int | str
    index: int


@dataclass(frozen=True, slots=True)
class _Ends:
    source: str
    target: str
    arrow: str
    unit: str


def is_description(line: str) -> bool:
    """Whether the line describes a matrix."""
    # Longer lines are no descriptions, and the pattern is not meant for them.
    return len(line) < 400 and ("(row)" in line or "(column)" in line) and DESCRIPTION.search(line) is not None


def store_cell(test: Test, cell: Cell, imported: Imported) -> LinkObservation | None:
    """The observation of one cell; None where the cell is empty of meaning (reported or counted in ``imported``)."""
    ends = _ends(test, cell)
    if ends is None:
        imported.skip(f"matrix '{test.description[:60]}' is not understood")
        return None
    value: float | None = None
    if cell.text.strip().upper() != "N/A":
        try:
            value = finite_number(cell.text)
            if value < 0:
                raise ValueError(f"{value:g} is negative")
        except ValueError as error:
            imported.bad(cell.where, str(error), "check the matrix against the original output")
            return None
    if not value and ends.source == ends.target and ends.arrow:
        imported.skip("diagonal not measured")
        return None
    return _link(test, ends, value, cell.index)


def _ends(test: Test, cell: Cell) -> _Ends | None:
    described = DESCRIPTION.search(test.description)
    named = _ENDS.search(described["before"]) if described else None
    if described is None or named is None:
        return None
    positions = {"row": cell.row, "column": cell.column}
    first = _end(named["first"], positions.get(named["first_axis"] or ""))
    second = _end(named["second"], positions.get(named["second_axis"] or "")) if named["second"] else first
    source, target = (second, first) if named["arrow"] == "<-" else (first, second)
    return _Ends(source, target, named["arrow"] or "", described["unit"])


def _end(kind: str, position: int | None) -> str:
    if kind.startswith("All"):
        return "device:all"
    return f"{'host' if kind == 'CPU' else 'device'}:{position if position is not None else 0}"


def _link(test: Test, ends: _Ends, value: float | None, index: int) -> LinkObservation:
    part = _PART.search(test.description)
    detail: dict[str, Scalar] = {"test": test.name} if test.name else {}
    if " SM " in test.description or " CE " in test.description:
        detail["copied_by"] = "sm" if " SM " in test.description else "copy engine"
    if part:
        detail["part"] = part.group(1)
    if ends.arrow == "<->" and ends.unit == "GB/s":
        detail["opposite_copy_running"] = True
    if "all" in test.name.split("_"):
        detail["all_devices_at_once"] = True
    total = part is not None and part.group(1) == "Total"
    measured = bool(value)
    return LinkObservation(
        _kind(ends.source, ends.target),
        ends.source,
        ends.target,
        "both_ways" if total else "one_way",
        test.size_bytes,
        value * _GIGABYTE if value and ends.unit == "GB/s" else None,
        value * _SECONDS[ends.unit] if value and ends.unit in _SECONDS else None,
        statistic=test.statistic,
        num_samples=test.num_samples,
        method="nvbandwidth",
        detail=detail,
        ok=measured,
        error="" if measured else "not available (N/A)",
        row=index,
    )


def _kind(source: str, target: str) -> LinkKind:
    if source.startswith("host"):
        return "host_to_device"
    if target.startswith("host"):
        return "device_to_host"
    return "device_memory" if source == target and source != "device:all" else "device_to_device"
