"""ucc_perftest (UCC): collectives with time over ranks and bus bandwidth (``-F``).

Recognised by ``Collective:``, ``Memory type:`` and the header ``Count Size Time, us [Bandwidth, GB/s]``.
Columns: count, size, time avg min max (us, over ranks), bandwidth **avg max min** (GB of 10^9 bytes a second).
Traps: for Allgather the size is one rank's part; for Alltoall it is the piece for one peer in older and the whole
buffer in newer versions (``Bus Bandwidth``); Reduce_scatter prints the whole input.  The number of ranks is not
printed, but the bandwidth reveals both: bandwidth x time / size is n - 1 for a part, (n - 1)/n for the whole
(2(n - 1)/n for Allreduce).
Source: openucx/ucc tools/perf/ucc_pt_benchmark.cc, ucc_pt_coll_*.cc (get_bw), generator/ucc_pt_generator_exp.cc.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importing.collective_sizes import GROUP_SIZE_HINT
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Scalar
from profiles.observations.timing import Timing

_BEGIN = re.compile(r"^[ \t]*Collective:[ \t]+(\w+)", re.MULTILINE)
_TABLE = re.compile(r"\bCount\s+Size\s+Time, us")
_SETTING = re.compile(r"^\s*(Memory type|Datatype|Reduction|Inplace|small|large):?\s+(\S+)\s*$")
_OPERATIONS: dict[str, CollectiveOperation] = {
    "allreduce": "all_reduce", "allgather": "all_gather", "allgatherv": "all_gather", "alltoall": "all_to_all",
    "alltoallv": "all_to_all", "reduce_scatter": "reduce_scatter", "reduce_scatterv": "reduce_scatter",
    "bcast": "broadcast", "reduce": "reduce", "gather": "gather", "gatherv": "gather", "scatter": "scatter",
    "scatterv": "scatter", "barrier": "barrier",
}  # fmt: skip
_SHARED = frozenset({"all_gather", "all_to_all", "reduce_scatter"})
_PRINTED_ERROR = 0.005e9
_ROUND_TRIP = 1e-6


def matches(head: Head) -> bool:
    """Whether the text holds the heading and the column header of ucc_perftest."""
    return _BEGIN.search(head.text) is not None and _TABLE.search(head.text) is not None


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    size_bytes: int
    time_s: float
    low_s: float
    high_s: float
    bandwidth_bytes_per_s: float | None


@dataclass(slots=True)
class _Run:
    name: str
    settings: dict[str, str] = field(default_factory=dict)
    after_warmup: bool = False
    in_table: bool = False
    is_new: bool = False
    rows: list[_Row] = field(default_factory=list)

    @property
    def operation(self) -> CollectiveOperation | None:
        """The collective that this run measured; None for copies and local reductions."""
        return _OPERATIONS.get(self.name.casefold())


def group_of(run: _Run) -> tuple[int | None, bool | None]:
    """(ranks, whether the printed size is a part of the tensor) from the best row; None where it cannot be told."""
    rows = [row for row in run.rows if row.bandwidth_bytes_per_s and row.size_bytes]
    if not rows or run.operation not in (*_SHARED, "all_reduce"):
        return None, None
    best = max(rows, key=lambda row: row.bandwidth_bytes_per_s or 0.0)
    per_byte_s = best.time_s / best.size_bytes
    bandwidth = best.bandwidth_bytes_per_s or 0.0
    low, high = (bandwidth - _PRINTED_ERROR) * per_byte_s, (bandwidth + _PRINTED_ERROR) * per_byte_s
    whole = 2.0 if run.operation == "all_reduce" else 1.0
    found = [(n, False) for n in _integers(_ranks(low, whole), _ranks(high, whole))]
    if run.operation in _SHARED:
        found += [(n, True) for n in _integers(low + 1, high + 1)]
    return found[0] if len(found) == 1 else (None, None)


def _ranks(ratio: float, whole: float) -> float:
    return whole / (whole - ratio) if ratio < whole else math.inf


def _integers(low: float, high: float) -> list[int]:
    """Whole numbers from 2 within [low, high]; two stand for many."""
    first = max(2, math.ceil(low - _ROUND_TRIP)) if math.isfinite(low) else None
    if first is None or first > high + _ROUND_TRIP:
        return []
    return [first] if first + 1 > high + _ROUND_TRIP else [first, first + 1]


def _store(run: _Run, options: ReadOptions, batches: Batches, imported: Imported) -> None:
    operation = run.operation
    if operation is None:
        imported.skip(f"{run.name} is not a measurement that is stored", max(1, len(run.rows)))
        return
    revealed, is_part = group_of(run)
    given = given_whole(options, "group_size")
    group_size = given or revealed
    if given and revealed and given != revealed:
        imported.flag(
            "rank-mismatch", f"{run.name}: --set group_size={given}, but the bandwidths show {revealed} ranks"
        )
    if is_part is None:
        is_part = operation in ("all_gather", "gather", "scatter") or (operation == "all_to_all" and not run.is_new)
    if is_part and group_size is None:
        imported.skip("the group size is not known", len(run.rows))
        return
    if group_size is None:
        imported.flag("group-size-unknown", f"{run.name}: the number of ranks is not printed; {GROUP_SIZE_HINT}")
    memory = run.settings.get("Memory type", "")
    environment = environment_of(
        options, communication_library="ucc", num_devices=group_size if memory in ("cuda", "rocm") else None
    )
    for row in run.rows:
        try:
            batches.of(environment).collectives.append(
                _observation(run, row, operation, group_size, (group_size or 1) if is_part else 1)
            )
        except ValueError as error:
            imported.bad(row.line, str(error), "check the line against the original output")


def _observation(
    run: _Run, row: _Row, operation: CollectiveOperation, group_size: int | None, parts: int
) -> CollectiveObservation:
    small, large = run.settings.get("small", ""), run.settings.get("large", "")
    detail: dict[str, Scalar] = {"memory": run.settings.get("Memory type", ""), "spread_over": "ranks"}
    if parts != 1:
        detail["printed_size_bytes"] = row.size_bytes
    return CollectiveObservation(
        operation,
        row.size_bytes * parts,
        group_size,
        Timing(
            row.time_s,
            "mean",
            int(small) if small == large and small.isdecimal() and 0 < len(small) < 10 and int(small) else None,
            min_s=row.low_s,
            max_s=row.high_s,
        ),
        dtype=dtype_of(run.settings.get("Datatype", "")),
        in_place={"0": False, "1": True}.get(run.settings.get("Inplace", "")),
        reduction="" if run.settings.get("Reduction", "N/A") == "N/A" else run.settings["Reduction"],
        launch="blocking",
        detail=detail,
        row=row.line,
    )


def _row(number: int, cells: list[str]) -> _Row:
    if len(cells) not in (5, 8):
        raise ValueError(f"{len(cells)} columns where the table has 5 or 8")
    size_bytes = 0 if cells[1] == "N/A" else whole_number(cells[1])
    times = [finite_number(cell) / 1e6 for cell in cells[2:5]]
    if size_bytes < 0 or min(times) < 0:
        raise ValueError("a negative number")
    bandwidth = None if len(cells) == 5 or cells[5] == "N/A" else finite_number(cells[5]) * 1e9
    return _Row(number, size_bytes, times[0], times[1], times[2], bandwidth)


def _runs(file: SourceFile, imported: Imported) -> list[_Run]:
    runs: list[_Run] = []
    for line in short_lines(file, imported):
        text = line.text
        if begin := _BEGIN.match(text):
            runs.append(_Run(begin.group(1)))
        elif not runs:
            continue
        elif _TABLE.search(text):
            runs[-1].in_table, runs[-1].is_new = True, "Bus Bandwidth" in text
        elif text.strip().startswith("Iterations"):
            runs[-1].after_warmup = True
        elif setting := _SETTING.match(text):
            if setting.group(1) not in ("small", "large") or runs[-1].after_warmup:
                runs[-1].settings[setting.group(1)] = setting.group(2)
        elif runs[-1].in_table and text.lstrip().startswith("Total time:"):
            runs[-1].is_new = True
        elif runs[-1].in_table and re.match(r"\s*(?:\d+|N/A)\s+\S", text):
            try:
                runs[-1].rows.append(_row(line.number, text.split()))
            except ValueError as error:
                imported.bad(line.number, str(error), "check the line against the original output")
    return runs


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every row as a collective of the full tensor."""
    imported = Imported(tool="ucc_perftest")
    batches = Batches()
    for run in _runs(files[0], imported):
        _store(run, options, batches, imported)
    hint = GROUP_SIZE_HINT if imported.skipped.get("the group size is not known") else "did the benchmark finish?"
    return finished(imported, batches, files[0], "no row of results could be stored", hint)


FORMAT = Format("ucc-perftest", "ucc_perftest (text)", matches, read)
