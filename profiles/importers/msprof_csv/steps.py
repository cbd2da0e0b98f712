"""Time and memory of each step: ``step_trace_time.csv`` and ``memory_record.csv``.

A step takes ``Computing + Communication(Not Overlapped) + Free`` microseconds; ``Stage`` leaves out the pipeline
``Bubble`` and is therefore not the step time.  ``Step`` is empty where the script never called ``step()``: such a row
covers the whole recording and is no iteration.  Megabytes of memory are 2^20 bytes (torch_npu divides by 1024^2).
"""

from __future__ import annotations

from profiles.importing.csv_rows import CsvRow, CsvTable
from profiles.importing.imported import Batch, Imported
from profiles.observations.records import IterationObservation, Scalar
from profiles.observations.timing import Timing

_PARTS = ("Computing", "Communication(Not Overlapped)", "Free")
_DETAILS = {
    "Computing": "computing_s",
    "Communication(Not Overlapped)": "exposed_communication_s",
    "Overlapped": "overlapped_s",
    "Communication": "communication_s",
    "Free": "free_s",
    "Stage": "stage_s",
    "Bubble": "bubble_s",
    "Preparing": "preparing_s",
}


def read_steps(
    table: CsvTable, batch: Batch, imported: Imported, rank: int | None, num_devices: int | None, where: str = ""
) -> None:
    """Add one iteration for each step of each device."""
    for row in table.rows(imported):
        if row["Type"] not in ("", "rank"):
            imported.skip("rows of whole pipeline stages")
            continue
        try:
            step = _step(row)
            if step is None:
                imported.skip("rows over the whole recording, which was not divided into steps")
                continue
            batch.iterations.append(_iteration(row, step, rank, num_devices))
        except ValueError as error:
            imported.bad(f"{where}:{row.line}" if where else row.line, str(error))


def _step(row: CsvRow) -> int | None:
    text = row["Step"].removeprefix("ProfilerStep#").removeprefix("step")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _iteration(row: CsvRow, step: int, rank: int | None, num_devices: int | None) -> IterationObservation:
    parts_us = [row.number(name) for name in _PARTS]
    if min(parts_us) < 0:
        raise ValueError("a part of the step is negative")
    detail: dict[str, Scalar] = {}
    for column, name in _DETAILS.items():
        value = row.optional_number(column)
        if value is not None:
            detail[name] = value / 1e6
    if rank is None and row["Type"] == "rank" and row["Index"].isdigit():
        rank = int(row["Index"][:9])
    if rank is None and row["Device_id"].isdigit():
        detail["device_id"] = int(row["Device_id"][:9])
    return IterationObservation(
        timing=Timing(sum(parts_us) / 1e6, statistic="single", num_samples=1),
        iteration=step,
        rank=rank,
        num_devices=num_devices,
        detail=detail,
        row=row.line,
    )


def read_memory(
    table: CsvTable, batch: Batch, imported: Imported, rank: int | None, num_devices: int | None, where: str = ""
) -> None:
    """Add the peaks of each component (the framework's allocator PTA, the graph engine GE, the process APP)."""
    unit, scale = ("MB", 2**20) if "Total Reserved(MB)" in table.columns else ("KB", 2**10)
    peaks: dict[str, list[float | None]] = {}
    for row in table.rows(imported):
        try:
            readings = [row.optional_number(f"Total {kind}({unit})") for kind in ("Allocated", "Reserved")]
            if any(reading is not None and reading < 0 for reading in readings):
                raise ValueError("a reading of memory is negative")
        except ValueError as error:
            imported.bad(f"{where}:{row.line}" if where else row.line, str(error))
            continue
        known = peaks.setdefault(row["Component"][:40], [None, None])
        for index, reading in enumerate(readings):
            if reading is not None:
                known[index] = max(known[index] or 0.0, reading)
    for component, (allocated, reserved) in peaks.items():
        if not allocated and not reserved:
            continue
        batch.iterations.append(
            IterationObservation(
                timing=None,
                rank=rank,
                num_devices=num_devices,
                peak_allocated_bytes=round(allocated * scale) if allocated else None,
                peak_reserved_bytes=round(reserved * scale) if reserved else None,
                detail={"component": component} if component else {},
            )
        )
