"""PARAM comms benchmark: rows ``COMMS-RES-all_reduce-float32 size nElementsPerRank p50 p75 p95 Min Max AlgBW BusBW``.

Recognised by ``COMMS-RES`` rows or their header with ``Latency(us):p50``.  Units: us (percentiles over ranks), GB of
10^9 a second.  Older rows have no collective in their label and may lack Min and Max; newer ones may add
``TotalLatency(us):p50``, ``CompLatency(us):p50`` and ``TFlops`` at the end.
Traps: for all_gather, all_to_all and reduce_scatter the size is the whole buffer and ``nElementsPerRank`` one rank's
part; where the two are equal instead, the size is a part.  The number of ranks follows from BusBW / AlgBW, or from
size / (elements x bytes), or is given.
Source: facebookresearch/param train/comms/pt/comms.py (printPreamble, reportBenchTime), comms_utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from profiles.importing.collective_sizes import GROUP_SIZE_HINT
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.bandwidth import group_size_of_ratio
from profiles.observations.records import CollectiveObservation, CollectiveOperation
from profiles.observations.timing import Timing

_LABEL = re.compile(
    r"COMMS-RES(?P<quantised>-QUANT)?(?:-(?P<name>[a-z][a-z0-9_]*)-(?P<dtype>[a-z]+\d*)(?P<tag>\S*))?\s"
)
_SEEN = re.compile(r"COMMS-RES(?:-[a-z]\S{1,80})?[ \t]+(?:\d+[ \t]+\d+[ \t]+\d|size \(B\))|COMMS-RES[ \t]+size \(B\)")
_OPERATIONS: dict[str, CollectiveOperation] = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "all_gather_base": "all_gather",
    "all_gather_v": "all_gather", "reduce_scatter": "reduce_scatter", "reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_v": "reduce_scatter", "all_to_all": "all_to_all", "all_to_allv": "all_to_all",
    "all_to_all_single": "all_to_all", "broadcast": "broadcast", "reduce": "reduce", "gather": "gather",
    "scatter": "scatter", "pt2pt": "send_recv",
}  # fmt: skip
_BYTES = {"float32": 4, "float": 4, "int32": 4, "int": 4, "float16": 2, "half": 2, "bfloat16": 2, "float64": 8,
          "double": 8, "int64": 8, "long": 8, "int8": 1, "uint8": 1}  # fmt: skip
_SPLIT = frozenset({"all_gather", "reduce_scatter", "all_to_all"})


def matches(head: Head) -> bool:
    """Whether the text holds a result row or the result header of the benchmark."""
    return _SEEN.search(head.text) is not None


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    operation: CollectiveOperation
    dtype: str
    size_bytes: int
    elements: int
    times_us: tuple[float, ...]
    low_us: float | None
    high_us: float | None
    algorithm: float
    bus: float


def _parse(line: int, operation: CollectiveOperation, dtype: str, cells: list[str]) -> _Row:
    numbers = [finite_number(cell) for cell in cells]
    if min(numbers) < 0:
        raise ValueError("a negative number")
    size_bytes = whole_number(cells[0])
    if operation == "send_recv":
        if len(cells) < 11:
            raise ValueError(f"{len(cells)} numbers where a pt2pt row has 11")
        return _Row(line, operation, dtype, size_bytes, 0, tuple(numbers[1:4]), None, None, 0.0, 0.0)
    if len(cells) == 7:
        return _Row(line, operation, dtype, size_bytes, whole_number(cells[1]), tuple(numbers[2:5]), None, None,
                    numbers[5], numbers[6])  # fmt: skip
    if not 9 <= len(cells) <= 12:
        raise ValueError(f"{len(cells)} numbers where a row has 7, or 9 to 12")
    return _Row(line, operation, dtype, size_bytes, whole_number(cells[1]), tuple(numbers[2:5]), numbers[5], numbers[6],
                numbers[7], numbers[8])  # fmt: skip


def _ranks(rows: Sequence[_Row]) -> int | None:
    """Ranks that the rows imply: by bandwidths where exactly one number fits, else by the elements of one rank."""
    for row in sorted(rows, key=lambda row: -row.algorithm):
        if row.algorithm and row.bus:
            error = 0.0005 / row.algorithm + 0.0005 * row.bus / row.algorithm**2
            bounds = [group_size_of_ratio(row.operation, row.bus / row.algorithm + sign * error) for sign in (-1, 1)]
            if bounds[0] and bounds[1] and round(bounds[0]) == round(bounds[1]) >= 2:
                return round(bounds[0])
    for row in rows:
        part = row.elements * _BYTES.get(row.dtype, 0)
        if row.operation in _SPLIT and part and row.size_bytes % part == 0 and row.size_bytes > part:
            return row.size_bytes // part
    return None


def _observation(row: _Row, group_size: int | None, imported: Imported) -> CollectiveObservation | None:
    part = row.elements * _BYTES.get(row.dtype, 0)
    is_part = row.operation in ("gather", "scatter") or (row.operation in _SPLIT and part == row.size_bytes)
    if row.size_bytes == 0:
        imported.skip("size 0")
        return None
    if is_part and group_size is None:
        imported.skip("the group size is not known")
        return None
    median, _, tail = row.times_us
    return CollectiveObservation(
        row.operation,
        row.size_bytes * (group_size or 1) if is_part else row.size_bytes,
        2 if row.operation == "send_recv" else group_size,
        Timing(
            median / 1e6,
            "median",
            min_s=None if row.low_us is None else row.low_us / 1e6,
            max_s=None if row.high_us is None else row.high_us / 1e6,
        ),
        dtype=dtype_of(row.dtype),
        detail={"p95_s": tail / 1e6, "spread_over": "ranks"},
        row=row.line,
    )


def _rows(file: SourceFile, options: ReadOptions, imported: Imported) -> list[_Row]:
    rows: list[_Row] = []
    for line in short_lines(file, imported):
        label = _LABEL.search(line.text + " ")
        if label is None or "size (B)" in line.text:
            continue
        name = label["name"] or options.given.get("operation", "")
        operation = _OPERATIONS.get(name)
        if label["quantised"] or operation is None:
            imported.skip("quantised" if label["quantised"] else f"operation '{name[:30]}' is not one that is stored")
            continue
        try:
            dtype = label["dtype"] or options.given.get("dtype", "")
            rows.append(_parse(line.number, operation, dtype, line.text[label.end() :].split()))
        except (ValueError, IndexError) as error:
            imported.bad(line.number, str(error) or "an empty row", "check the line against the original output")
    return rows


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every row as a collective of the full tensor."""
    imported = Imported(tool="param-comms")
    rows = _rows(files[0], options, imported)
    given = given_whole(options, "group_size")
    batches = Batches()
    for operation in dict.fromkeys(row.operation for row in rows):
        same = [row for row in rows if row.operation == operation]
        group_size = given or _ranks(same)
        for row in same:
            try:
                observation = _observation(row, group_size, imported)
            except ValueError as error:
                imported.bad(row.line, str(error), "check the line against the original output")
                continue
            if observation is not None:
                environment = environment_of(options, framework="pytorch", num_devices=group_size)
                batches.of(environment).collectives.append(observation)
    if any(row.group_size is None for batch in batches.all() for row in batch.collectives):
        imported.flag("group-size-unknown", f"the number of ranks cannot be told; {GROUP_SIZE_HINT}")
    hint = "rows without a collective in their label need --set operation=all_reduce (or another)"
    return finished(imported, batches, files[0], "no row of results could be stored", hint)


FORMAT = Format("param-comms", "PARAM comms benchmark (text)", matches, read)
