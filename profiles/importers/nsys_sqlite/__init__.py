"""Nsight Systems: kernels, their times and NVTX ranges, from ``nsys export --type sqlite``.

Recognised by the SQLite magic and by tables that only this exporter writes.  Tables exist only where something was
recorded, and columns come and go between schema versions, so both are probed.  Read:

- ``CUPTI_ACTIVITY_KIND_KERNEL`` (start, end in ns; names are ids of ``StringIds``): one observation for each kernel
  name and innermost NVTX push/pop range of the launching thread, with median, percentiles and count;
- ``CUPTI_ACTIVITY_KIND_RUNTIME``: the launch of a kernel has its correlation id, within one process;
- ``CUPTI_ACTIVITY_KIND_MEMCPY`` and ``_MEMSET``: link observations for each direction, kind of memory and size;
- ``TARGET_INFO_GPU`` (before 2021.3 ``TARGET_INFO_CUDA_GPU``), ``TARGET_INFO_SYSTEM_ENV``, ``META_DATA_EXPORT``.

Traps: NVTX text stands in ``text`` or, for registered strings, in ``textId``; ``emit_nvtx`` makes each text unique
(``op_id = 7``); time of NCCL kernels includes waiting for the last rank; with CUDA graphs traced as a whole their
kernels are missing.  Rows are streamed in SQL order and reduced at once; a file of gigabytes is never held in memory.
Source: NVIDIA Nsight Systems user guide, "SQLite schema reference"; schema 3.25 of a real export.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.nsys_sqlite.copies import read_copies
from profiles.importers.nsys_sqlite.kernels import KERNELS, read_kernels
from profiles.importers.nsys_sqlite.machine import Machine, read_machine
from profiles.importing.foreign_database import Database
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile

_MAGIC = b"SQLite format 3\0"
_OWN_TABLES = (b"CUPTI_ACTIVITY_KIND_", b"TABLE NVTX_EVENTS", b"ENUM_NSYS_EVENT", b"TABLE META_DATA_EXPORT")


def matches(head: Head) -> bool:
    """Whether it is an SQLite file with tables of Nsight Systems (or of its forerunner, to refuse it clearly)."""
    return head.raw.startswith(_MAGIC) and any(table in head.raw for table in _OWN_TABLES)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Kernels and copies of one exported report.  Raises DocumentInvalid for damaged files and those without either."""
    file = files[0]
    with Database(file) as database:
        _refuse_others(database, file)
        imported = Imported(tool="nsys", tool_version=database.setting("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION"))
        schema = database.setting("META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION")
        if schema:
            imported.facts["schema_version"] = schema
        machine = read_machine(database, imported, options)
        read_kernels(database, machine, imported)
        read_copies(database, machine, imported)
        _note_what_is_missing(database, machine, imported)
    imported.batches = [batch for batch in machine.batches if batch.num_observations]
    if not imported.batches:
        found = imported.bad_rows[0].what if imported.bad_rows else "no kernel and no copy was recorded"
        hint = "record with `nsys profile --trace cuda,nvtx`, then export again"
        raise DocumentInvalid(f"nothing to import: {found}", where=file.where, hint=hint)
    return imported


def _refuse_others(database: Database, file: SourceFile) -> None:
    if database.has("StringTable") and not database.has("StringIds"):
        raise DocumentInvalid(
            "this is a database of nvprof, the tool before Nsight Systems",
            where=file.where,
            hint="record again with nsys, or export CSV with: nvprof --csv --print-gpu-summary",
        )


def _note_what_is_missing(database: Database, machine: Machine, imported: Imported) -> None:
    if database.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
        imported.flag(
            "graphs-as-a-whole",
            "CUDA graphs were traced as a whole: their kernels are missing (record with --cuda-graph-trace=node)",
        )
    if not database.has(KERNELS):
        imported.flag("no-kernels", "the report has no kernels; only copies were read")
    if not machine.device_known:
        imported.flag("device-unknown", "the report does not name the device; give it with --set device=NAME")


FORMAT = Format("nsys-sqlite", "Nsight Systems export (SQLite)", matches, read)
