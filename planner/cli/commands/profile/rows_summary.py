"""The kinds of rows, one line each: how many, which groups and dtypes, sizes and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.answers.views.words import seconds

if TYPE_CHECKING:
    import pyarrow as pa

    from profiles.observation_store.preparing import PreparedBatch
    from profiles.observation_store.schema import Kind

MOST_LINES = 40
COLUMNS = ("what", ">rows", "group, dtype", ">sizes", ">measured")
_BY: dict[Kind, tuple[str, str]] = {
    "operators": ("operator", "dtype"),
    "collectives": ("operation", "group_size"),
    "links": ("kind", "direction"),
    "iterations": ("model", "num_devices"),
}
_MEASURED: dict[Kind, str] = {
    "operators": "time_s",
    "collectives": "time_s",
    "links": "bandwidth_bytes_per_s",
    "iterations": "time_s",
}

Range = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class RowsOfAKind:
    """Rows of one class (matmul, all_reduce, ...) on one device."""

    device: str
    kind: Kind
    what: str
    num_rows: int
    aspects: frozenset[str]
    sizes: Range
    measured: Range

    def joined(self, other: RowsOfAKind) -> RowsOfAKind:
        """Both together."""
        return RowsOfAKind(
            *(self.device, self.kind, self.what, self.num_rows + other.num_rows, self.aspects | other.aspects),
            _hull(self.sizes, other.sizes),
            _hull(self.measured, other.measured),
        )

    def cells(self) -> tuple[str, str, str, str, str]:
        """For a table with ``COLUMNS``."""
        told = sorted(self.aspects)
        return (
            self.what or self.kind.removesuffix("s"),
            f"{self.num_rows:,}",
            ", ".join(told[:4]) + (", ..." if len(told) > 4 else ""),
            _words(self.sizes, _size),
            _words(self.measured, _rate if self.kind == "links" else seconds),
        )


def batch_lines(batches: Sequence[PreparedBatch]) -> list[tuple[str, ...]]:
    """Lines of several batches, rows of one class on one device together: device, then ``COLUMNS``."""
    found = (
        each
        for batch in batches
        for kind in batch.tables
        for each in rows_of_kinds(batch.record.device or "unknown", kind, batch.columns(kind, wanted_columns(kind)))
    )
    together: dict[tuple[str, str, str], RowsOfAKind] = {}
    for each in found:
        key = (each.device, each.kind, each.what)
        together[key] = together[key].joined(each) if key in together else each
    lines: list[tuple[str, ...]] = [(each.device, *each.cells()) for each in together.values()]
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], ("...", f"{more} more", "", "", "", "")]


def wanted_columns(kind: Kind) -> list[str]:
    """Columns that a summary looks at."""
    sizes = ["size_bytes"] if kind in ("collectives", "links") else []
    return [*_BY[kind], _MEASURED[kind], *sizes]


def rows_of_kinds(device: str, kind: Kind, table: pa.Table) -> Iterator[RowsOfAKind]:
    """The classes of one table, the commonest first."""
    (by, aspect), measured = _BY[kind], _MEASURED[kind]
    ranged = [name for name in (measured, "size_bytes") if name in table.column_names]
    wanted = [*((name, end) for name in ranged for end in ("min", "max")), (by, "count"), (aspect, "distinct")]
    found = table.group_by(by, use_threads=False).aggregate(wanted).to_pylist()
    for row in sorted(found, key=lambda each: -int(each[f"{by}_count"])):
        yield RowsOfAKind(
            *(device, kind, str(row[by]), row[f"{by}_count"]),
            frozenset(str(value) for value in row[f"{aspect}_distinct"] if value not in (None, "")),
            _range(row, "size_bytes"),
            _range(row, measured),
        )


def _range(row: dict[str, Any], name: str) -> Range:
    low, high = row.get(f"{name}_min"), row.get(f"{name}_max")
    return None if low is None or high is None else (low, high)


def _hull(first: Range, second: Range) -> Range:
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])


def _words(ends: Range, words: Callable[[float], str]) -> str:
    if ends is None:
        return ""
    return words(ends[0]) if ends[0] == ends[1] else f"{words(ends[0])} to {words(ends[1])}"


def _size(num_bytes: float) -> str:
    """``8 B``, ``64 KiB``, ``1.5 GiB``."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if num_bytes >= scale:
            return f"{num_bytes / scale:,.4g} {unit}"
    return f"{num_bytes:,.0f} B"


def _rate(bytes_per_s: float) -> str:
    """``398 GB/s``, ``1.21 MB/s``."""
    scale, unit = (1e9, "GB/s") if bytes_per_s >= 1e9 else (1e6, "MB/s")
    return f"{bytes_per_s / scale:,.4g} {unit}"
