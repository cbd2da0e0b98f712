"""All-reduce tables of vTrain (``trace/<device>/AR_GPU<n>_1M_1024M_LUT``): a CSV of nccl-tests figures.

    size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)

Time in **ns** (out-of-place, then in-place).  The number of ranks is in the file name only; it is checked against
size, time and bus bandwidth, whose product is the factor 2(n - 1)/n.  Up to eight ranks were inside one server.
Source: VIA-Research/vTrain, trace/.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import CsvRow, head_rows, open_csv
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation
from profiles.observations.timing import Timing

_HEADER = ("size(B)", "count", "type", "time(ns)", "busbw(GB/s)", "time(ns)", "busbw(GB/s)")
_NAME = re.compile(r"AR_GPU(\d{1,5})(?!\d)")


def matches(head: Head) -> bool:
    """Whether the first line is the header of such a table."""
    if not head.text[:200].lstrip("\ufeff").startswith("size(B),"):
        return False
    rows = head_rows(head)
    return bool(rows) and tuple(rows[0]) == _HEADER


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One all-reduce table.  Raises DocumentInvalid where the number of ranks cannot be known."""
    file = files[0]
    imported = Imported("vtrain")
    table = open_csv(file, is_header=lambda cells: tuple(cells[:7]) == _HEADER)
    found: list[CollectiveObservation] = []
    factors: list[float] = []
    for row in table.rows(imported):
        try:
            pair = [_observation(row, index, file.name) for index in (0, 1)]
        except ValueError as error:
            imported.bad(row.line, str(error))
            continue
        factors += [factor for _, factor in pair if factor]
        found += [observation for observation, _ in pair]
    group_size = _group_size(file, options, factors, imported)
    imported.facts["num_rows_read"] = len(found) // 2
    batches = Batches()
    environment = environment_of(
        options, _device(file), num_devices=group_size, num_nodes=_nodes(group_size), communication_library="nccl"
    )
    batch = batches.of(environment)
    batch.collectives.extend(_with_group(each, group_size) for each in found)
    return finished(imported, batches, file, "the table has no usable row", "check that the file is complete")


def _observation(row: CsvRow, index: int, name: str) -> tuple[CollectiveObservation, float | None]:
    """One measurement and the factor that its bus bandwidth shows.  Raises ValueError."""
    size = int(row.cells[0]) if row.cells[0].strip().isascii() and row.cells[0].strip().isdigit() else -1
    if not 0 < size < 2**62:
        raise ValueError(f"size '{row.cells[0][:40]}' is no whole number from 1")
    time_ns, bandwidth = _positive(row.cells[3 + 2 * index]), _positive(row.cells[4 + 2 * index])
    observation = CollectiveObservation(
        operation="all_reduce",
        size_bytes=size,
        group_size=None,
        timing=Timing(time_ns / 1e9, statistic="mean"),
        dtype=dtype_of(row.cells[2]),
        in_place=index == 1,
        row=row.line,
    )
    return observation, bandwidth * time_ns / size if bandwidth >= 1 else None


def _group_size(file: SourceFile, options: ReadOptions, factors: list[float], imported: Imported) -> int:
    """Ranks by the file name (or the user), checked against the bandwidths."""
    match = _NAME.search(file.name)
    named = int(match.group(1)) if match else given_whole(options, "group_size")
    factor = median(factors) if factors else None
    shown = round(2 / (2 - factor)) if factor is not None and 0.9 < factor < 1.98 else None
    certain = shown is not None and factor is not None and abs(factor - 2 * (shown - 1) / shown) < 0.01
    if named is None and not certain:
        raise DocumentInvalid(
            "neither the file name (AR_GPU8_...) nor the bandwidths tell the number of ranks",
            where=file.where,
            hint="give it with --set group_size=8",
        )
    if certain and named is not None and shown != named:
        what = f"the file is named for {named} ranks, the bandwidths belong to {shown}; {shown} is used"
        imported.flag("rank-mismatch", what)
    size = shown if certain and shown is not None else named
    return size if size is not None and size > 0 else 1


def _with_group(observation: CollectiveObservation, group_size: int) -> CollectiveObservation:
    return CollectiveObservation(
        operation=observation.operation,
        size_bytes=observation.size_bytes,
        group_size=group_size,
        timing=observation.timing,
        dtype=observation.dtype,
        num_nodes=_nodes(group_size),
        devices_per_node=group_size if _nodes(group_size) else None,
        in_place=observation.in_place,
        row=observation.row,
    )


def _nodes(group_size: int) -> int | None:
    return 1 if group_size <= 8 else None


def _device(file: SourceFile) -> str:
    """The device that the folder is named after: trace/a100/AR_GPU8_..."""
    folder = file.path.parent.name
    return folder.upper() if re.fullmatch(r"[avhb]\d00", folder.casefold()) else ""


def _positive(text: str) -> float:
    plain = text.strip()
    if not re.fullmatch(r"\d{1,15}(?:\.\d{1,9})?", plain) or float(plain) <= 0:
        raise ValueError(f"'{text[:40]}' is no positive number")
    return float(plain)


FORMAT = Format("vtrain-collectives", "vTrain all-reduce tables", matches, read)
