"""What kinds of rows does a batch hold?  One line each: how many, which groups and dtypes, sizes and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from planner.cli.render.words import seconds

if TYPE_CHECKING:
    import pyarrow as pa

    from profiles.observation_store.preparing import PreparedBatch
    from profiles.observation_store.schema import Kind

MOST_LINES = 40
_BY: dict[str, tuple[str, str]] = {
    "operators": ("operator", "dtype"),
    "collectives": ("operation", "group_size"),
    "links": ("kind", "direction"),
    "iterations": ("model", "num_devices"),
}

_MEASURED: dict[str, str] = {
    "operators": "time_s",
    "collectives": "time_s",
    "links": "bandwidth_bytes_per_s",
    "iterations": "time_s",
}

Line = tuple[str, str, str, str, str, str]


def batch_lines(prepared: Sequence[PreparedBatch]) -> list[Line]:
    """Lines of several batches: device, what, rows, group or dtype, sizes, times."""
    lines: list[Line] = []
    for batch in prepared:
        device = batch.record.device or "unknown"
        for kind in batch.tables:
            table = batch.columns(kind, wanted_columns(kind))
            lines += [(device, *cells) for cells in table_lines(kind, table)]
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], ("...", f"{more} more", "", "", "", "")]


def wanted_columns(kind: Kind) -> list[str]:
    """Columns that a summary looks at."""
    sizes = ["size_bytes"] if kind in ("collectives", "links") else []
    return [*_BY[kind], _MEASURED[kind], *sizes]


def table_lines(kind: Kind, table: pa.Table) -> Iterator[tuple[str, str, str, str, str]]:
    """Lines of one table, the commonest first."""
    (by, aspect), measured = _BY[kind], _MEASURED[kind]
    sized = "size_bytes" in table.column_names
    ranges = [(name, end) for name in (measured, *(["size_bytes"] if sized else [])) for end in ("min", "max")]
    wanted = [*ranges, (by, "count"), (aspect, "distinct")]
    found = table.group_by(by, use_threads=False).aggregate(wanted).to_pylist()
    words = _rate if kind == "links" else seconds
    for row in sorted(found, key=lambda each: -int(each[f"{by}_count"])):
        yield (
            str(row[by]) or kind.removesuffix("s"),
            f"{row[f'{by}_count']:,}",
            _aspects(row[f"{aspect}_distinct"]),
            _range(row.get("size_bytes_min"), row.get("size_bytes_max"), _size),
            _range(row[f"{measured}_min"], row[f"{measured}_max"], words),
        )


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


def _range(low: float | None, high: float | None, words: Callable[[float], str]) -> str:
    if low is None or high is None:
        return ""
    return words(low) if low == high else f"{words(low)} to {words(high)}"


def _aspects(values: list[Any] | None) -> str:
    told = sorted({str(value) for value in values or [] if value not in (None, "")})
    return ", ".join(told[:4]) + (", ..." if len(told) > 4 else "")
