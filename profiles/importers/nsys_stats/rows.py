"""The rows of one report: operator observations, and link observations from times and sizes together."""

from __future__ import annotations

import re

from profiles.importers.nsys_stats.tables import Table
from profiles.importing.duration_statistics import Durations
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.redaction import Redactor
from profiles.observations.records import LinkKind, LinkObservation, OperatorObservation, Phase, Scalar
from profiles.observations.timing import Statistic, Timing

_PER_SECOND = {"ns": 1e9, "nsec": 1e9, "us": 1e6, "usec": 1e6, "ms": 1e3, "msec": 1e3, "s": 1.0, "sec": 1.0}
_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LONGEST_NAME = 400
_PRINTED_STEP = 0.001
_NAME_COLUMNS = {"range_kernels": "kernel name", "projection": "range", "ranges": "range", "times": "operation"}
_TRACE_DEVICE = re.compile(r"(.*?)\s*\(\d+\)\Z")

_COPIES: tuple[tuple[re.Pattern[str], LinkKind], ...] = (
    (re.compile(r"host-to-device|htod", re.IGNORECASE), "host_to_device"),
    (re.compile(r"device-to-host|dtoh", re.IGNORECASE), "device_to_host"),
    (re.compile(r"peer-to-peer|ptop", re.IGNORECASE), "device_to_device"),
    (re.compile(r"device-to-device|dtod|memset", re.IGNORECASE), "device_memory"),
    (re.compile(r"host-to-host|htoh", re.IGNORECASE), "host_memory"),
)

Transfers = dict[str, dict[str, tuple[int, float, int | None]]]


def read_table(table: Table, batch: Batch, imported: Imported, transfers: Transfers, devices: set[str]) -> None:
    """Add one report to the batch; times and sizes of copies are only collected (they belong together)."""
    if table.kind == "calls":
        imported.skip("calls of the host (API and operating system summaries)", len(table.rows))
    elif table.kind == "trace":
        _read_trace(table, batch, imported, devices)
    elif table.kind in ("times", "sizes"):
        for line, cells in table.rows:
            try:
                _collect(table, cells, line, transfers)
            except ValueError as error:
                imported.bad(line, str(error))
    else:
        for line, cells in table.rows:
            try:
                batch.operators.append(_operator(table, cells, line))
            except ValueError as error:
                imported.bad(line, str(error))
        if table.kind == "ranges" and table.rows:
            imported.flag("host-time", "NVTX ranges are timed on the host, not on the device", table.line)


def read_transfers(transfers: Transfers, batch: Batch, imported: Imported) -> None:
    """Mean bandwidth of each kind of copy whose time and size were both printed."""
    for operation, found in transfers.items():
        if "times" not in found or "sizes" not in found:
            imported.skip("kinds of copies of which only the time or only the size is there")
            continue
        (count, total_s, line), (_, size, _) = found["times"], found["sizes"]
        if total_s <= 0 or size / count < 1e6 * _PRINTED_STEP * 100:
            imported.skip("kinds of copies too small for a bandwidth")
            continue
        batch.links.append(_link(operation, round(size / count), size / total_s, "mean", count, line))


def _operator(table: Table, cells: list[str], line: int) -> OperatorObservation:
    name = _cell(table, cells, _NAME_COLUMNS.get(table.kind, "name"))
    if not name:
        raise ValueError("the row has no name")
    plain = Redactor().clean(name)[:_LONGEST_NAME]
    detail: dict[str, Scalar] = {}
    operator, phase = kernel_class(plain), _phase("")
    if table.kind in ("ranges", "projection"):
        operator, phase = "module", _phase(plain)
        plain = plain.removeprefix(":")
        detail["clock"] = "host" if table.kind == "ranges" else "device"
    elif operator == "collective":
        detail["operation"] = collective_operation(plain)
    if table.kind == "range_kernels":
        label = Redactor().clean(_cell(table, cells, "nvtx range"))[:200].removeprefix(":")
        detail["nvtx_range"], phase = label, _phase(label)
    for column in ("gridxyz", "blockxyz"):
        if _cell(table, cells, column):
            detail[column.removesuffix("xyz")] = " ".join(_cell(table, cells, column).split())[:60]
    return OperatorObservation(operator, plain, _timing(table, cells), phase=phase, detail=detail, row=line)


def _timing(table: Table, cells: list[str]) -> Timing:
    count = whole_number(_cell(table, cells, "count"), thousands=True)
    total_s = _seconds(table, cells, "total time")
    statistic: Statistic = "single" if count == 1 else "mean"
    time_s = _seconds(table, cells, "avg")
    if time_s is None:
        if total_s is None or count < 1:
            raise ValueError("neither an average nor a total time")
        time_s = total_s / count
    median_s = _seconds(table, cells, "med")
    if median_s is not None and count > 1:
        time_s, statistic = median_s, "median"
    return Timing(
        time_s,
        statistic=statistic,
        num_samples=count,
        min_s=_seconds(table, cells, "min"),
        max_s=_seconds(table, cells, "max"),
        std_s=_seconds(table, cells, "stddev") if count > 1 else None,
    )


def _seconds(table: Table, cells: list[str], column: str) -> float | None:
    text = _cell(table, cells, column)
    if not text:
        return None
    unit = table.units[f"{table.columns[column]}"] or "ns"
    if unit not in _PER_SECOND:
        raise ValueError(f"column '{column}' has the unit '{unit[:20]}', which is not known here")
    value = finite_number(text, thousands=True)
    if value < 0:
        raise ValueError(f"column '{column}' is {text}: a time is not negative")
    return value / _PER_SECOND[unit]


def _collect(table: Table, cells: list[str], line: int, transfers: Transfers) -> None:
    count = whole_number(_cell(table, cells, "count"), thousands=True)
    if count < 1:
        raise ValueError("a kind of copy that never ran")
    value = _seconds(table, cells, "total time") if table.kind == "times" else _size(table, cells, "total")
    if value is None:
        raise ValueError("the row has no total")
    transfers.setdefault(_cell(table, cells, "operation"), {})[table.kind] = (count, value, line)


def _size(table: Table, cells: list[str], column: str) -> float:
    unit = table.units[f"{table.columns[column]}"]
    if unit not in _BYTES:
        raise ValueError(f"column '{column}' has the unit '{unit[:20]}', which is not known here")
    value = finite_number(_cell(table, cells, column), thousands=True) * _BYTES[unit]
    if value < 0:
        raise ValueError(f"column '{column}' is negative")
    return value


def _link(
    operation: str, size_bytes: int, bandwidth: float, statistic: Statistic, count: int, line: int | None
) -> LinkObservation:
    kind: LinkKind = next((found for pattern, found in _COPIES if pattern.search(operation)), "device_memory")
    host_source = kind in ("host_to_device", "host_memory")
    host_target = kind in ("device_to_host", "host_memory")
    return LinkObservation(
        kind=kind,
        source="host:0" if host_source else "device:0",
        target="host:0" if host_target else "device:1" if kind == "device_to_device" else "device:0",
        direction="one_way",
        size_bytes=size_bytes,
        bandwidth_bytes_per_s=bandwidth,
        statistic=statistic,
        num_samples=count,
        method="memset" if "memset" in operation.casefold() else "memcpy",
        detail={"unified": True} if "unified" in operation.casefold() else {},
        row=line,
    )


def _read_trace(table: Table, batch: Batch, imported: Imported, devices: set[str]) -> None:
    kernels: dict[str, tuple[Durations, int]] = {}
    copies: dict[tuple[str, int], tuple[Durations, int]] = {}
    for line, cells in table.rows:
        try:
            duration_s = _seconds(table, cells, "duration")
            name = _cell(table, cells, "name")
            if duration_s is None or not name:
                raise ValueError("the row has no duration or no name")
            device = _TRACE_DEVICE.match(_cell(table, cells, "device"))
            if device:
                devices.add(device.group(1)[:100])
            picoseconds = round(duration_s * 1e12)
            if not name.startswith("["):
                kernels.setdefault(name, (Durations(), line))[0].add(picoseconds)
            elif _cell(table, cells, "bytes"):
                size = round(_size(table, cells, "bytes"))
                copies.setdefault((name, size), (Durations(), line))[0].add(picoseconds)
        except (ValueError, OverflowError) as error:
            imported.bad(line, str(error))
    for name, (durations, line) in kernels.items():
        plain = Redactor().clean(name)[:_LONGEST_NAME]
        try:
            batch.operators.append(OperatorObservation(kernel_class(plain), plain, durations.timing(1e12), row=line))
        except ValueError as error:
            imported.bad(line, str(error))
    for (name, size), (durations, line) in copies.items():
        _add_copy(name, size, durations, line, batch, imported)


def _add_copy(name: str, size: int, durations: Durations, line: int, batch: Batch, imported: Imported) -> None:
    if size < 1e6 * _PRINTED_STEP * 100:
        imported.skip("copies too small for a bandwidth", len(durations))
        return
    try:
        timing = durations.timing(1e12)
    except ValueError as error:
        imported.bad(line, str(error))
        return
    batch.links.append(_link(name, size, size / timing.time_s, timing.statistic, len(durations), line))


def _phase(label: str) -> Phase:
    plain = label.casefold()
    if "backward" in plain or "bwd" in plain:
        return "backward"
    return "forward" if "forward" in plain or "fwd" in plain else "unknown"


def _cell(table: Table, cells: list[str], column: str) -> str:
    index = table.columns.get(column)
    return "" if index is None else cells[index]
