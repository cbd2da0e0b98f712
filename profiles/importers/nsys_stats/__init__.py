"""``nsys stats``: summaries of kernels, copies and NVTX ranges, as CSV, as columns with a ruler, or as a drawn table.

Recognised by a header line with ``Time (%)`` and ``Total Time (ns)`` (or the columns of another of its reports).
Several reports may follow each other in one text, among anything else that a run prints.  Read:

- ``cuda_gpu_kern_sum`` (also with grid and block, and under its old names): one operator observation a kernel;
- ``nvtx_kern_sum``: the same for each NVTX range;  ``nvtx_gpu_proj_sum``: device time projected onto ranges;
- ``nvtx_sum``: durations of ranges on the host, kept apart as ``clock: host``;
- ``cuda_gpu_mem_time_sum`` with ``cuda_gpu_mem_size_sum``: mean bandwidth of each direction;
- ``cuda_gpu_trace``: single kernels and copies.  API and OS summaries are passed over.

Units stand in the header (``Avg (us)`` with ``--timeunit``); before 2021 averages had none and were ns like the total.
``MB`` is 10^6 bytes (4 MiB are printed as 4.194), ``MiB`` and ``KiB`` are binary.  Numbers may have thousands
separators.  The median is taken where there is one, else the mean.  No report names its device, except the trace.
Source: NVIDIA Nsight Systems user guide, "stats reports"; public outputs of 2020.3 to 2026.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.device_names import catalogue_device
from profiles.errors import DocumentInvalid
from profiles.importers.nsys_stats.rows import read_table, read_transfers
from profiles.importers.nsys_stats.tables import looks_like_report, tables
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.environment import Environment

_HEAD_LINES = 20_000


def matches(head: Head) -> bool:
    """Whether a line of the head is the header of one of the reports that are read."""
    return any(looks_like_report(line) for line in head.text.splitlines()[:_HEAD_LINES] if len(line) < 4000)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All reports of one text.  Raises DocumentInvalid where none has a kernel, copy or range."""
    file = files[0]
    imported = Imported(tool="nsys")
    batch = Batch(Environment())
    transfers: dict[str, dict[str, tuple[int, float, int | None]]] = {}
    devices: set[str] = set()
    for table in tables(file, imported):
        read_table(table, batch, imported, transfers, devices)
    read_transfers(transfers, batch, imported)
    reported = devices.pop() if len(devices) == 1 else ""
    given = options.given.get("device", "")
    batch.environment = Environment(device=given or catalogue_device(reported) or "", device_reported=reported)
    if not (reported or given):
        imported.flag("device-unknown", "the reports do not name the device; give it with --set device=NAME")
    if not batch.num_observations:
        found = imported.bad_rows[0].what if imported.bad_rows else "no kernel, copy or NVTX range with a time"
        hint = "print with: nsys stats --report cuda_gpu_kern_sum --format csv REPORT.nsys-rep"
        raise DocumentInvalid(f"nothing to import: {found}", where=file.where, hint=hint)
    if any(each.operator == "collective" for each in batch.operators):
        imported.flag("waiting-included", "times of communication kernels include waiting for the last rank")
    imported.batches = [batch]
    return imported


FORMAT = Format("nsys-stats", "Nsight Systems stats reports", matches, read)
