"""Ascend profiler tables as single files: kernels, operators, steps, memory of torch_npu and msprof.

Recognised by the header of the first row that is not blank: ``kernel_details.csv`` (``Name, Type, Duration(us)``),
``op_summary*.csv`` (``Op Name, OP Type, Task Duration(us)``), ``task_time*.csv``, ``op_statistic*.csv``,
``operator_details.csv``, ``step_trace_time.csv`` (also of a cluster), ``memory_record.csv``.

Times are microseconds by their headers.  Traps: a TAB behind start times, shapes in three quotes, ``Block Dim`` renamed
``Block Num``, columns that come and go with the metrics that were recorded, ``N/A`` cells.  No table names its device:
give it with ``--set device=ascend-910b3``.
Source: Ascend/pytorch (torch_npu) profiler and msprof documentation; public fixtures with real column sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.msprof_csv.kernels import KernelGroups
from profiles.importers.msprof_csv.operators import read_operator_details, read_statistic
from profiles.importers.msprof_csv.steps import read_memory, read_steps
from profiles.importing.csv_rows import head_rows, open_csv
from profiles.importing.environments import environment_of, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.source_file import Head, SourceFile


def table_kind(header: Sequence[str]) -> str:
    """Which table has this header: kernels, statistic, operators, steps, memory; empty for any other."""
    names = {name.strip() for name in header}
    kinds = (
        ("kernels", {"Name", "Type", "Duration(us)"}, ("Accelerator Core", "Start Time(us)", "Task ID", "Device_id")),
        ("kernels", {"Op Name", "OP Type", "Task Duration(us)"}, ()),
        ("kernels", {"kernel_name", "kernel_type", "task_time(us)"}, ()),
        ("statistic", {"OP Type", "Count", "Total Time(us)"}, ()),
        ("operators", {"Name", "Host Self Duration(us)", "Device Self Duration(us)"}, ()),
        ("steps", {"Step", "Computing", "Communication(Not Overlapped)", "Free"}, ()),
        ("memory", {"Component", "Total Reserved(MB)"}, ("Timestamp(us)", "Device Type")),
        ("memory", {"Component", "Total Reserved(KB)"}, ("Timestamp(us)", "Device")),
    )
    return next((kind for kind, needed, one_of in kinds if needed <= names and (not one_of or names & set(one_of))), "")


def matches(head: Head) -> bool:
    """Whether the first row is the header of one of the tables."""
    rows = head_rows(head)
    return bool(rows) and bool(table_kind(rows[0]))


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One table.  Raises DocumentInvalid where it holds nothing usable."""
    file = files[0]
    imported = Imported(tool="msprof")
    batch = Batch(environment_of(options))
    kernels = KernelGroups()
    read_table(file, batch, kernels, imported, rank=None, num_devices=given_whole(options, "num_devices"))
    kernels.store(batch, imported)
    if not batch.environment.device:
        imported.flag("device-unknown", "the tables do not name the device; give it with --set device=NAME")
    if not batch.num_observations:
        reasons = [row.what for row in imported.bad_rows] or list(imported.skipped) or ["the table has no rows"]
        hint = "record with an active schedule: call step() on the profiler after each training step"
        raise DocumentInvalid(f"nothing to import: {reasons[0]}", where=file.where, hint=hint)
    imported.batches = [batch]
    return imported


def read_table(
    file: SourceFile,
    batch: Batch,
    kernels: KernelGroups,
    imported: Imported,
    *,
    rank: int | None,
    num_devices: int | None,
    where: str = "",
) -> None:
    """Add one table to a run.  Raises DocumentInvalid for a file that is no such table."""
    table = open_csv(file)
    kind = table_kind(table.header)
    if kind == "kernels":
        kernels.add_table(table, imported, where)
    elif kind == "statistic":
        read_statistic(table, batch, imported, where)
    elif kind == "operators":
        read_operator_details(table, batch, imported, where)
    elif kind == "steps":
        read_steps(table, batch, imported, rank, num_devices, where)
    elif kind == "memory":
        read_memory(table, batch, imported, rank, num_devices, where)
    else:
        raise DocumentInvalid(
            "this is no table of the Ascend profiler that is read",
            where=f"{file.where}:{table.header_line}",
            hint="give kernel_details, op_summary, op_statistic, operator_details, step_trace_time or memory_record",
        )


FORMAT = Format("msprof-csv", "Ascend profiler tables (torch_npu, msprof)", matches, read)
