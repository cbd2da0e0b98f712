"""DeepSpeed / EleutherAI communication benchmarks (``ds_bench``, ``run_all.py``): one table for each operation.

Recognised by ``---- Performance of all_reduce on 16 devices ----``.  Columns: size (1024-based with two digits, or
bytes with ``--raw``), description (``elements x bytes``: the exact size), duration (``us`` or ``ms`` in the cell, or
``Duration (us)`` with ``--raw``), throughput and bus bandwidth (``Gbps`` or ``GBps``; not needed).
Traps: all_gather prints one rank's input, the other operations the whole buffer; the throughput of all_reduce counts
the buffer twice; bandwidths are decimal, sizes binary.
Source: EleutherAI/cookbook benchmarks/communication/*.py, deepspeedai/DeepSpeed bin/ds_bench.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.printed_sizes import PRINTED_SIZE, printed_size_bytes
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Scalar
from profiles.observations.timing import Timing

_TITLE = re.compile(r"---- Performance of (\w[\w ]{0,30}?) on (\d{1,7}) devices ---")
_HEADER = re.compile(r"Size \(Bytes\)\s+Description\s+Duration( \(us\))?\s+Throughput \((\w+)\)\s+BusBW \((\w+)\)")
_ROW = re.compile(
    rf"^\s*(?P<size>{PRINTED_SIZE}|\d+)\s+(?P<about>\S+)\s+(?P<time>\S+)(?:\s(?P<unit>us|ms|s))?\s+(?P<tput>\S+)\s+"
    r"(?P<bus>\S+)\s*$"
)
_EXACT = re.compile(r"(\d{1,15})x(\d{1,2})")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_OPERATIONS: dict[str, CollectiveOperation] = {
    "allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all", "broadcast": "broadcast",
    "reducescatter": "reduce_scatter", "pt2pt": "send_recv", "p2p": "send_recv",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether the text holds a table title of the benchmark."""
    return _TITLE.search(head.text) is not None


@dataclass(slots=True)
class _Table:
    name: str
    devices: int
    raw: bool = False

    @property
    def operation(self) -> CollectiveOperation | None:
        """The collective, by its letters alone: all_to_all and alltoall are the same."""
        return _OPERATIONS.get(re.sub(r"[^a-z0-9]", "", self.name.casefold()))


def _size(match: re.Match[str]) -> tuple[int, bool]:
    """(bytes, whether rounded): the description where it agrees with the printed size, else the printed size."""
    text = match["size"]
    printed, rounded = (whole_number(text), False) if text.isdecimal() else printed_size_bytes(text)
    exact = _EXACT.fullmatch(match["about"])
    size = int(exact.group(1)) * int(exact.group(2)) if exact else 0
    return (size, False) if size and abs(size - printed) <= 0.01 * printed + 1 else (printed, rounded)


def _row(table: _Table, operation: CollectiveOperation, match: re.Match[str], line: int) -> CollectiveObservation:
    unit = match["unit"] or ("us" if table.raw else "")
    if unit not in _SECONDS:
        raise ValueError("the duration has no unit, and the header names none")
    for name in ("tput", "bus"):
        finite_number(match[name])
    size_bytes, rounded = _size(match)
    if size_bytes < 1 or table.devices < 1:
        raise ValueError(f"{size_bytes} bytes on {table.devices} devices")
    ranks = 2 if operation == "send_recv" else table.devices
    detail: dict[str, Scalar] = {"size_rounded": True} if rounded else {}
    if operation == "all_gather":
        detail["printed_size_bytes"] = size_bytes
    return CollectiveObservation(
        operation,
        size_bytes * ranks if operation == "all_gather" else size_bytes,
        ranks,
        Timing(finite_number(match["time"]) * _SECONDS[unit], "mean"),
        launch="back_to_back",
        detail=detail,
        row=line,
    )


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every row of every table as a collective."""
    imported = Imported(tool="ds_bench")
    batches = Batches()
    table: _Table | None = None
    for line in short_lines(files[0], imported):
        if title := _TITLE.search(line.text):
            table = _Table(title.group(1), int(title.group(2)))
        elif header := _HEADER.search(line.text):
            if table is not None:
                table.raw = header.group(1) is not None
        elif "Ran out of GPU memory" in line.text and table is not None:
            imported.flag("out-of-memory", f"{table.name} ran out of memory at its next size", line.number)
        elif table is not None and re.match(r"\s*[-+]?\d", line.text):
            row = _ROW.match(line.text)
            if table.operation is None:
                imported.skip(f"{table.name} is not an operation that is stored")
            elif row is None:
                if len(line.text.split()) in range(2, 7):
                    imported.bad(line.number, "not size, description, duration, throughput and bandwidth", "cut off?")
            else:
                try:
                    observation = _row(table, table.operation, row, line.number)
                    environment = environment_of(options, num_devices=table.devices)
                    batches.of(environment).collectives.append(observation)
                except ValueError as error:
                    imported.bad(line.number, str(error), "check the line against the original output")
    rows = [row for batch in batches.all() for row in batch.collectives]
    if any("size_rounded" in row.detail for row in rows):
        imported.flag("rounded-size", "some sizes are printed with two digits in powers of 1024")
    return finished(imported, batches, files[0], "no row of results", "did the benchmark run to its end?")


FORMAT = Format("ds-bench", "DeepSpeed / EleutherAI communication benchmarks (text)", matches, read)
