"""DeepSpeed communication logger: the summary (``dist.log_summary()``) and the ``verbose`` line of each call.

Recognised by the header ``Comm. Op  Message Size  Count  Total Latency(ms)  Avg Latency(ms) ...`` or by lines
``comm op: all_reduce | time (ms): 9.46 | msg size: 678.86 MB | algbw (Gbps): ...``.  Units: ms; sizes in powers of
1024 with two digits (flag ``rounded-size``); bandwidths in Gbit/s, from which only the world size is worked out.
Traps: the average is trimmed by 10 % at each end and printed with two digits; times hold the waiting for slower
ranks (the straggler table, where printed, does not); the group of an operation is never printed (the bandwidths use
the world size), and the size of all_gather is one rank's input: such rows need ``--set group_size=N``.
Source: deepspeedai/DeepSpeed deepspeed/utils/comms_logging.py, deepspeed/comm/comm.py (get_msg_size_from_args).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importing.collective_sizes import GROUP_SIZE_HINT
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.printed_sizes import PRINTED_SIZE, printed_size_bytes
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Scalar
from profiles.observations.timing import Timing

_SUMMARY = re.compile(r"Comm\. Op\s+Message Size\s+Count\s+Total Latency\(ms\)\s+Avg Latency\(ms\)")
_STRAGGLER = re.compile(r"Comm\. Op\s+Message Size\s+Count\s+Total comm lat\(ms\)")
_VERBOSE = re.compile(
    r"comm op: (?P<op>\w+)(?: \| \[Caller Func: (?P<caller>[\w.<>]+)\])? \| time \(ms\): (?P<time>\S+) \| "
    rf"msg size: (?P<size>{PRINTED_SIZE}) \| algbw \(Gbps\): (?P<algbw>\S+)\s+\| busbw \(Gbps\): (?P<busbw>\S+)"
)
_OPERATION = re.compile(r"^\s*([a-z]\w+)(?: \| \[Caller Func: ([\w.<>]+)\])?\s*$")
_ROW = re.compile(rf"^\s+(?P<size>{PRINTED_SIZE})\s+(?P<rest>\S.*)$")
_OPERATIONS: dict[str, tuple[CollectiveOperation, bool]] = {
    # beginning of DeepSpeed's name: operation, and whether the size is one rank's part; longest names first
    "all_gather": ("all_gather", True), "allgather": ("all_gather", True),
    "reduce_scatter": ("reduce_scatter", False), "all_reduce": ("all_reduce", False),
    "inference_all_reduce": ("all_reduce", False), "all_to_all": ("all_to_all", False),
    "broadcast": ("broadcast", False), "reduce": ("reduce", False), "send": ("send_recv", False),
    "recv": ("send_recv", False), "isend": ("send_recv", False), "irecv": ("send_recv", False),
    "gather": ("gather", True), "scatter": ("scatter", True), "barrier": ("barrier", False),
}  # fmt: skip
_PRINTED_ERROR = 0.005


def matches(head: Head) -> bool:
    """Whether the text holds the logger's summary header or one of its verbose lines."""
    return _SUMMARY.search(head.text) is not None or _VERBOSE.search(head.text) is not None


@dataclass(slots=True)
class _Call:
    """One row: an operation of one size, as printed."""

    line: int
    name: str
    caller: str
    size: str
    milliseconds: float
    count: int
    detail: dict[str, Scalar]
    algorithm_gbps: float = 0.0
    bus_gbps: float = 0.0


@dataclass(slots=True)
class _Reader:
    imported: Imported
    summary: list[_Call] = field(default_factory=list)
    verbose: list[_Call] = field(default_factory=list)
    table: str = ""
    name: str = ""
    caller: str = ""

    def line(self, number: int, text: str) -> None:
        try:
            if _SUMMARY.search(text):
                self.table, self.name = "summary", ""
            elif _STRAGGLER.search(text):
                self.table, self.name = "straggler", ""
            elif verbose := _VERBOSE.search(text):
                self.verbose.append(_verbose_call(number, verbose))
            elif self.table and (operation := _OPERATION.match(text)):
                self.name, self.caller = operation.group(1), operation.group(2) or ""
            elif self.table and self.name and (row := _ROW.match(text)):
                self.row(number, row["size"], row["rest"].split())
        except ValueError as error:
            self.imported.bad(number, str(error), "check the line against the original output")

    def row(self, number: int, size: str, cells: list[str]) -> None:
        if len(cells) != 5:
            raise ValueError(f"{len(cells) + 1} columns where the header has 6")
        count = whole_number(cells[0])
        total, average, third, fourth = (finite_number(cell) for cell in cells[1:])
        if count < 1 or min(total, average, third, fourth) < 0:
            raise ValueError("a count below one or a negative number")
        detail: dict[str, Scalar] = {}
        if self.table == "straggler":
            average, detail = third, {"waiting_excluded": True}
            third = fourth = 0.0
        if average == 0 and total > 0:
            average, detail = total / count, {**detail, "time_is": "total / count"}
        self.summary.append(_Call(number, self.name, self.caller, size, average, count, detail, third, fourth))


def _verbose_call(number: int, match: re.Match[str]) -> _Call:
    numbers = [finite_number(match[name]) for name in ("time", "algbw", "busbw")]
    if min(numbers) < 0:
        raise ValueError("a negative number")
    return _Call(number, match["op"], match["caller"] or "", match["size"], numbers[0], 1, {}, numbers[1], numbers[2])


def _operation(name: str) -> tuple[CollectiveOperation, bool] | None:
    known = [prefix for prefix in _OPERATIONS if name == prefix or name.startswith(prefix + "_")]
    return None if not known or "object" in name else _OPERATIONS[max(known, key=len)]


def world_size(calls: Sequence[_Call]) -> int | None:
    """Ranks of the whole job: bus over algorithm bandwidth is (n - 1)/n; None unless exactly one n fits."""
    fitting = [call for call in calls if 0 < call.bus_gbps < call.algorithm_gbps]
    if not fitting:
        return None
    best = max(fitting, key=lambda call: call.algorithm_gbps)
    low = (best.bus_gbps - _PRINTED_ERROR) / (best.algorithm_gbps + _PRINTED_ERROR)
    high = (best.bus_gbps + _PRINTED_ERROR) / (best.algorithm_gbps - _PRINTED_ERROR)
    if not 0 < low < high < 1:
        return None
    first, last = math.ceil(1 / (1 - low)), math.floor(1 / (1 - high))
    return first if first == last and first > 1 else None


def _observation(call: _Call, group_size: int | None, single: bool, imported: Imported) -> CollectiveObservation | None:
    known = _operation(call.name)
    size_bytes, rounded = printed_size_bytes(call.size)
    if known is None:
        imported.skip(f"{call.name} is not an operation that is stored")
    elif size_bytes == 0 and known[0] != "barrier":
        imported.skip("size 0")
    elif call.milliseconds == 0:
        imported.skip("time printed as 0.00")
    elif known[1] and group_size is None:
        imported.skip("the group size is not known")
    else:
        detail: dict[str, Scalar] = {"logged_as": call.name, **call.detail}
        if call.caller:
            detail["caller"] = call.caller
        if rounded:
            detail["size_rounded"] = True
        return CollectiveObservation(
            known[0],
            size_bytes * (group_size or 1) if known[1] else size_bytes,
            group_size,
            Timing(call.milliseconds / 1e3, "single" if single else "mean", call.count),
            launch="in_situ",
            detail=detail,
            row=call.line,
        )
    return None


def _flags(imported: Imported, rows: Sequence[CollectiveObservation], ranks: int | None) -> None:
    if any("size_rounded" in row.detail for row in rows):
        imported.flag("rounded-size", "sizes are printed with two digits in powers of 1024")
    if any(row.timing is not None and row.timing.time_s < 0.5e-3 for row in rows):
        imported.flag("rounded-time", "times are printed in steps of 0.01 ms")
    if any("waiting_excluded" not in row.detail for row in rows):
        imported.flag("waiting-included", "times measured inside a run hold the waiting for slower ranks")
    left_out = imported.skipped.get("the group size is not known", 0)
    if left_out:
        world = f" (the bandwidths belong to a world of {ranks} ranks)" if ranks is not None else ""
        imported.flag("group-size-unknown", f"{left_out} rows print one rank's input; {GROUP_SIZE_HINT}{world}")


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Operations of the summary, or the single calls where there is no summary."""
    imported = Imported(tool="deepspeed-comms-logger")
    reader = _Reader(imported)
    for line in short_lines(files[0], imported):
        reader.line(line.number, line.text)
    calls = reader.summary or reader.verbose
    if reader.summary and reader.verbose:
        imported.skip("single call that the summary holds too", len(reader.verbose))
    ranks = world_size([*reader.summary, *reader.verbose])
    if ranks is not None:
        imported.facts["world_size"] = ranks
    group_size = given_whole(options, "group_size")
    rows: list[CollectiveObservation] = []
    for call in calls:
        try:
            row = _observation(call, group_size, not reader.summary, imported)
        except ValueError as error:
            imported.bad(call.line, str(error), "check the line against the original output")
            continue
        rows.extend([row] if row is not None else [])
    _flags(imported, rows, ranks)
    batches = Batches()
    environment = environment_of(options, framework="deepspeed", num_devices=ranks)
    batches.of(environment).collectives.extend(rows)
    hint = GROUP_SIZE_HINT if imported.skipped.get("the group size is not known") else "is the summary complete?"
    return finished(imported, batches, files[0], "no operation could be stored", hint)


FORMAT = Format("deepspeed-comms", "DeepSpeed communication logger (text)", matches, read)
