"""Vidur's network profiles: ``all_reduce.csv``, ``send_recv.csv`` and others of one form.

Recognised by ``time_stats.<collective>.<statistic>`` columns beside ``num_workers, size, collective``.  Times are in
milliseconds: NCCL kernels as Kineto saw them.  ``size`` is bytes of what one worker puts in; all_gather is therefore
stored with size x workers.  ``num_workers`` ranks sit ``devices_per_node`` on each node of ``max_devices_per_node``.
Several ranks may report the same case: each is kept, the rank in its detail.

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


def _matches(head: Head) -> bool:
    rows = head_rows(head)
    if not rows or not all(name in rows[0] for name in _COLUMNS):
        return False
    return any(cell.startswith("time_stats.") for cell in rows[0])


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("vidur")
    batches = Batches()
    for file in files:
        table = open_csv(file, required=_COLUMNS)
        columns = stats_columns(table)
        for row in table.rows(imported):
            try:
                statistics = columns.get(row["collective"]) or {}
                timing = stats_timing(row, statistics)
                if timing is None:
                    raise ValueError(f"the row names the collective {shown(row['collective'])}, which has no time")
                found = _collective(row, timing)
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


def _collective(row: CsvRow, timing: Timing) -> CollectiveObservation:
    """One row.  Raises ValueError."""
    operation = operation_of(row["collective"])
    if operation is None:
        raise ValueError(f"the collective {shown(row['collective'])} is none of {KNOWN}")
    workers, size, each = row.whole("num_workers"), row.whole("size"), row.optional_whole("devices_per_node")
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
