"""rocprof tables: kernels of an AMD GPU from rocprofv3, rocprofv2 and rocprof (v1), traces and statistics.

Recognised by the header of the first row: ``Kernel_Name, Start_Timestamp, End_Timestamp`` (``*_kernel_trace.csv``),
``KernelName, BeginNs, EndNs`` (``results.csv`` of v1), ``Name, Calls, TotalDurationNs`` (``*_kernel_stats.csv``,
``results.stats.csv``; the same header serves API calls, which are passed over).  All times are ns.
Traps: v1 appends `` [clone .kd]`` to names; counter tables repeat a launch for every counter and are not read; copies
(``*_memory_copy_trace.csv``) have no bytes before ROCm 7 and are then refused.  No table names its device.
Source: ROCm/rocprofiler-sdk documentation ("Using rocprofv3"); public outputs of ROCm 5.3 to 7.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import CsvRow, CsvTable, head_rows, open_csv
from profiles.importing.environments import environment_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_groups import KernelGroups
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import OperatorObservation
from profiles.observations.timing import Timing

_NANOSECONDS_PER_S = 1e9
_LONGEST_NAME = 400
_HOST_CALLS = ("hip", "hsa_", "__hip", "roctx", "rocdecode", "rocjpeg", "MEMORY_COPY", "MEMORY_ALLOCATION", "MARKER")
_TRACES = (("Kernel_Name", "Start_Timestamp", "End_Timestamp"), ("KernelName", "BeginNs", "EndNs"))


def table_kind(header: Sequence[str]) -> str:
    """Which table has this header: trace, statistic, copies; empty for any other."""
    names = set(header)
    if "Counter_Name" in names:
        return ""
    if any(names.issuperset(trace) for trace in _TRACES):
        return "trace"
    if {"Name", "Calls", "TotalDurationNs"} <= names:
        return "statistic"
    return "copies" if {"Kind", "Direction", "Start_Timestamp", "End_Timestamp"} <= names else ""


def matches(head: Head) -> bool:
    """Whether the first row is the header of one of the tables."""
    rows = head_rows(head)
    return bool(rows) and bool(table_kind(rows[0]))


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Kernels of one table.  Raises DocumentInvalid where it holds nothing usable."""
    file = files[0]
    table = open_csv(file)
    kind = table_kind(table.header)
    imported = Imported(tool="rocprof")
    batch = Batch(environment_of(options))
    if kind == "trace":
        _read_trace(table, batch, imported)
    elif kind == "statistic":
        _read_statistic(table, batch, imported)
    else:
        raise DocumentInvalid(
            "the table holds copies without their sizes" if kind else "this is no kernel table of rocprof",
            where=f"{file.where}:{table.header_line}",
            hint="give *_kernel_trace.csv, or record JSON: rocprofv3 --memory-copy-trace --output-format json",
        )
    if not batch.environment.device:
        imported.flag("device-unknown", "the table does not name the device; give it with --set device=NAME")
    if not batch.num_observations:
        reasons = [row.what for row in imported.bad_rows] or list(imported.skipped) or ["the table has no rows"]
        hint = "record with: rocprofv3 --kernel-trace -- COMMAND"
        raise DocumentInvalid(f"nothing to import: {reasons[0]}", where=file.where, hint=hint)
    imported.batches = [batch]
    return imported


def _read_trace(table: CsvTable, batch: Batch, imported: Imported) -> None:
    name_column, begin, end = next(trace for trace in _TRACES if table.has(*trace))
    kernels = KernelGroups()
    agents: set[str] = set()
    for row in table.rows(imported):
        if row["Kind"] not in ("", "KERNEL_DISPATCH"):
            imported.skip("activities that are no kernels")
            continue
        try:
            name = _plain_name(row[name_column])
            # The time stamps have more digits than a float holds.
            duration = row.whole(end) - row.whole(begin)
            kernels.add(name, _size(row, "Grid_Size", "grd"), _size(row, "Workgroup_Size", "wgr"), duration, row.line)
        except (ValueError, OverflowError) as error:
            imported.bad(row.line, str(error))
            continue
        agents.add(row["Agent_Id"] or row["gpu-id"] or row["GPU_ID"])
    kernels.store(batch, imported, _NANOSECONDS_PER_S)
    if agents - {""}:
        batch.environment = batch.environment.model_copy(update={"num_devices": len(agents - {""})})


def _read_statistic(table: CsvTable, batch: Batch, imported: Imported) -> None:
    for row in table.rows(imported):
        if row["Name"].startswith(_HOST_CALLS):
            imported.skip("calls of the host, and copies without a size")
            continue
        try:
            batch.operators.append(_statistic(row))
        except ValueError as error:
            imported.bad(row.line, str(error))


def _statistic(row: CsvRow) -> OperatorObservation:
    name = _plain_name(row["Name"])
    calls, total_ns = row.whole("Calls"), row.number("TotalDurationNs")
    if calls < 1:
        raise ValueError(f"column 'Calls' is {calls}")
    # v1 cuts the average to whole nanoseconds; total over calls keeps the rest.
    low, high, deviation = (row.optional_number(column) for column in ("MinNs", "MaxNs", "StdDev"))
    operator = kernel_class(name)
    return OperatorObservation(
        operator=operator,
        name=name[:_LONGEST_NAME],
        timing=Timing(
            total_ns / calls / _NANOSECONDS_PER_S,
            statistic="single" if calls == 1 else "mean",
            num_samples=calls,
            min_s=None if low is None else low / _NANOSECONDS_PER_S,
            max_s=None if high is None else high / _NANOSECONDS_PER_S,
            std_s=None if deviation is None or calls == 1 else deviation / _NANOSECONDS_PER_S,
        ),
        detail={"operation": collective_operation(name)} if operator == "collective" else {},
        row=row.line,
    )


def _plain_name(text: str) -> str:
    name = text.removesuffix(" [clone .kd]").removesuffix(".kd")
    if not name:
        raise ValueError("the row has no kernel name")
    return name


def _size(row: CsvRow, prefix: str, short: str) -> str:
    parts = [row[f"{prefix}_{axis}"] for axis in "XYZ"]
    return " ".join(parts)[:60] if all(parts) else (row[prefix] or row[short])[:60]


FORMAT = Format("rocprof-csv", "rocprof tables (v3, v2, v1)", matches, read)
