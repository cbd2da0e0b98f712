"""Vidur's network profiles: ``all_reduce.csv``, ``send_recv.csv`` and others of one form.

Recognised by ``time_stats.<collective>.<statistic>`` columns beside ``num_workers, size, collective``.  Times are in
milliseconds: NCCL kernels as Kineto saw them.  ``size`` is bytes of what one worker puts in; all_gather is therefore
stored with size x workers.  The first files have ``n_embd, num_tokens`` instead: elements of two bytes, of the
collective that the time columns name.  ``num_workers`` ranks sit ``devices_per_node`` on each node of
``max_devices_per_node``.  Several ranks may report the same case: each is kept, the rank in its detail.

Source: microsoft/vidur vidur/profiling/collectives/collectives_wrapper.py (size = elements x 2).
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.importers.vidur_compute import stats_columns, stats_timing
from profiles.importing.collective_names import KNOWN, operation_of
from profiles.importing.csv_rows import CsvRow, head_rows, open_csv
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import shown
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation
from profiles.observations.timing import Timing

_COLUMNS = ("num_workers", "size", "collective")
_FIRST_COLUMNS = ("num_workers", "n_embd", "num_tokens")
_ELEMENT_BYTES = 2


def _matches(head: Head) -> bool:
    rows = head_rows(head)
    if not rows or not any(all(name in rows[0] for name in columns) for columns in (_COLUMNS, _FIRST_COLUMNS)):
        return False
    named = {cell.split(".")[1] for cell in rows[0] if cell.startswith("time_stats.") and cell.count(".") >= 2}
    return bool(named) and ("collective" in rows[0] or all(operation_of(name) for name in named))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("vidur")
    batches = Batches()
    for file in files:
        table = open_csv(file, required=("num_workers",))
        columns = stats_columns(table)
        first = not table.has("collective")
        if first and not any(flag.code == "element-size" for flag in imported.flags):
            imported.flag("element-size", "sizes are n_embd x num_tokens elements of two bytes, Vidur's number format")
        for row in table.rows(imported):
            called = next(iter(columns), "") if first else row["collective"]
            try:
                size = _size(row, first)
                timing = stats_timing(row, columns.get(called) or {})
                if size == 0 or (timing is None and called in columns):
                    imported.skip("collective of no bytes, or without a time")
                    continue
                if timing is None:
                    raise ValueError(f"the row names the collective {shown(called)}, which has no time")
                found = _collective(row, called, size, timing)
                largest = row.optional_whole("max_devices_per_node")
                if largest is not None and largest < 1:
                    raise ValueError(f"column 'max_devices_per_node': {largest} is no number of devices")
            except ValueError as error:
                imported.bad(row.line, str(error), "is the row cut off, or from another file?")
                continue
            environment = environment_of(
                options, devices_per_node=largest, communication_library="nccl", framework="torch"
            )
            batches.of(environment).collectives.append(found)
    return finished(imported, batches, files[0], "no row holds a collective with a time", "check that it is complete")


def _size(row: CsvRow, first: bool) -> int:
    """Bytes that one worker puts in.  Raises ValueError."""
    return row.whole("n_embd") * row.whole("num_tokens") * _ELEMENT_BYTES if first else row.whole("size")


def _collective(row: CsvRow, called: str, size: int, timing: Timing) -> CollectiveObservation:
    """One row.  Raises ValueError."""
    operation = operation_of(called)
    if operation is None:
        raise ValueError(f"the collective {shown(called)} is none of {KNOWN}")
    workers, each = row.whole("num_workers"), row.optional_whole("devices_per_node")
    if workers < 1 or size < 1 or (each is not None and each < 1):
        raise ValueError("workers, size and devices per node are numbers from 1")
    num_nodes = None if each is None or workers % each else workers // each
    rank = row.optional_whole("rank")
    return CollectiveObservation(
        operation,
        size * workers if operation == "all_gather" else size,
        workers,
        timing,
        num_nodes=num_nodes,
        devices_per_node=each,
        launch="back_to_back",
        detail={} if rank is None else {"rank": rank},
        row=row.line,
    )


FORMAT = Format("vidur-network", "Vidur network profiles (all_reduce.csv, send_recv.csv)", _matches, _read)
