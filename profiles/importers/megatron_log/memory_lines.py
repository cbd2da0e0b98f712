"""Memory use and out-of-memory errors of a rank: Megatron's memory reports and the frameworks' errors.

``[Rank 0] (after 2 iterations) memory (MB) | allocated: .. | max allocated: .. | reserved: .. | max reserved: ..``:
MB is 2^20 bytes (report_memory divides by 1024^2), also in the line "Theoretical memory footprints".
Megatron-Bridge and newer: ``memory (GB) | mem-allocated-gigabytes: ..``: GB is 10^9 bytes.
Several reports may be glued onto one line.
``CUDA out of memory. Tried to allocate 2.00 GiB ...``: one observation a run, however many ranks say it.
"""

from __future__ import annotations

import re
from typing import Any

from profiles.importers.megatron_log.fields import bytes_of, fields_of
from profiles.importers.megatron_log.run import Run
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.importing.number_cells import finite_number
from profiles.observations.records import IterationObservation, Scalar

REPORT = re.compile(
    r"(?:\[Rank (?P<rank>\d{1,7})\] *)?\(after (?P<iteration>\d{1,12}) iterations\) memory \((?P<unit>MB|GB)\) *\|"
    r"|\[Rank (?P<only_rank>\d{1,7})\] memory \((?P<only_unit>MB|GB)\) *\|"
)
OUT_OF_MEMORY = re.compile(r"(?:CUDA|HIP|NPU|XPU|MUSA|MACA) out of memory\. Tried to allocate ([\d.]+ ?[KMGT]?i?B)")
_THEORY = re.compile(r"Theoretical memory footprints: ?(.*)")
_THEORY_PART = re.compile(r"(weight and optimizer|activation|total)=([\d.]{1,20}) MB")
_RANK = re.compile(r"\[(?:rank|default)(\d{1,6})\]")
_NAMES = {
    "allocated": "allocated_bytes",
    "max allocated": "peak_allocated_bytes",
    "reserved": "reserved_bytes",
    "max reserved": "peak_reserved_bytes",
    "mem-allocated-gigabytes": "allocated_bytes",
    "mem-max-allocated-gigabytes": "peak_allocated_bytes",
    "mem-reserved-gigabytes": "reserved_bytes",
    "mem-max-reserved-gigabytes": "peak_reserved_bytes",
}
_SCALE = {"MB": 2**20, "GB": 10**9}
_OLD_ALLOCATED = re.compile(r"([\d.]{1,20} [KMGT]iB) already allocated")
_OLD_RESERVED = re.compile(r"([\d.]{1,20} [KMGT]iB) reserved in total")
_CAPACITY = re.compile(r"(?:total capacity of ([\d.]{1,20} [KMGT]iB)|([\d.]{1,20} [KMGT]iB) total capacity)")
_NEW_ALLOCATED = re.compile(r"([\d.]{1,20} [KMGT]iB) is allocated by PyTorch")
_NEW_UNUSED = re.compile(r"([\d.]{1,20} [KMGT]iB) is reserved by PyTorch but unallocated")


def read_memory(line: LogLine, run: Run, imported: Imported) -> bool:
    """Add every memory report of the line to the run; False when there is none."""
    reports = list(REPORT.finditer(line.text))
    if not reports:
        return False
    ends = [report.start() for report in reports[1:]] + [len(line.text)]
    for report, end in zip(reports, ends, strict=True):
        try:
            readings = _readings(line.text[report.end() : end], _SCALE[report["unit"] or report["only_unit"]])
        except ValueError as error:
            imported.bad(line.number, f"memory report: {error}", "was the line cut off or mixed with another?")
            continue
        if not readings:
            imported.bad(line.number, "the memory report has no numbers", "was the line cut off?")
            continue
        named = report["rank"] or report["only_rank"]
        rank = int(named) if named else line.rank
        iteration = int(report["iteration"]) if report["iteration"] else None
        run.memory.append(IterationObservation(None, iteration=iteration, rank=rank, row=line.number, **readings))
    return True


def _readings(text: str, scale: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields_of(text).items():
        if name in _NAMES:
            amount = finite_number(next(iter(value.split("[")[0].split()), ""))
            if not 0 <= amount < 1e9:
                raise ValueError(f"{name} is {amount}")
            found[_NAMES[name]] = round(amount * scale)
    return found


def read_theory(text: str, run: Run) -> bool:
    """Keep Megatron's own estimate as facts of the run (it is no measurement); False for other lines."""
    match = _THEORY.search(text)
    if match is None:
        return False
    for name, amount in _THEORY_PART.findall(match[1]):
        size = _size_of(f"{amount} MiB")
        if size is not None:
            run.detail[f"theoretical_{name.replace(' ', '_')}_bytes"] = size
    return True


def read_out_of_memory(line: LogLine, run: Run) -> bool:
    """Note that a rank ran out of memory; False when the line does not say so."""
    match = OUT_OF_MEMORY.search(line.text)
    if match is None:
        return False
    run.num_out_of_memory += 1
    if run.out_of_memory is not None:
        return True
    named = _RANK.search(line.text)
    allocated = _size(_NEW_ALLOCATED, line.text) or _size(_OLD_ALLOCATED, line.text)
    unused = _size(_NEW_UNUSED, line.text)
    reserved = _size(_OLD_RESERVED, line.text)
    if reserved is None and allocated is not None and unused is not None:
        reserved = allocated + unused
    detail: dict[str, Scalar] = {}
    for key, size in (("tried_bytes", _size_of(match[1])), ("capacity_bytes", _size(_CAPACITY, line.text))):
        if size is not None:
            detail[key] = size
    last = run.last_iteration
    run.out_of_memory = IterationObservation(
        None,
        iteration=None if last is None else last + 1,
        rank=int(named[1]) if named else line.rank,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        out_of_memory=True,
        ok=False,
        error="out of memory",
        detail=detail,
        row=line.number,
    )
    return True


def _size(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return _size_of(next(group for group in match.groups() if group)) if match else None


def _size_of(text: str) -> int | None:
    try:
        return bytes_of(text)
    except ValueError:
        return None
