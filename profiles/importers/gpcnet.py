"""GPCNeT: latency and bandwidth per rank of whole-system patterns, alone and under congestion.

Recognised by ``Network Tests v1.3`` or ``NetworkLoad Tests v1.3`` and the boxed tables ``Name | Avg | 99% | Units``
(load tests: ``Min | Max | Avg | Avg(Worst) | 99% | 99.9%``, taken by the header of each table).
Units stand in each row: ``usec`` and ``MiB/s/rank`` (2^20 bytes).
Stored: random-ring and natural-ring rows as links (``MiB/s/rank`` is what one rank moves); ``Multiple Allreduce`` as
a collective whose group size is not printed, ``Multiple Alltoall`` as a link (it prints a bandwidth, no time).
Congestion impact factors are ratios and are left out,
as is the traffic of the congestors themselves.  Trap: tables "running with Congestion Tests" carry the
traffic of others (detail ``congested``).
Source: netbench/GPCNET network_test.c, subcomms.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, LinkObservation, Scalar
from profiles.observations.timing import Timing

_TITLE = re.compile(r"^.{0,60}Network ?(?:Load )?Tests v(\d[\w.]*)\s*$", re.MULTILINE)
_RANKS = re.compile(r"Test with (\d{1,9}) MPI ranks \((\d{1,9}) nodes\)")
_TABLE = re.compile(r"^\|\s*(Isolated .*?|Network Tests running.*?|.*Key Results.*?)\s*\|$")
_HEADER = re.compile(r"^\|\s*Name\s*\|(?P<cells>.*\|\s*Units\s*)\|$")
_CONGESTORS = ("Alltoall", "Two-sided Incast", "Put Incast", "Get Bcast")
_ROW = re.compile(r"^\|\s*(?P<name>[A-Z][^|]*?)\s*\(\s*(?P<size>\d{1,12}) B\)\s*\|(?P<cells>[^|]+(?:\|[^|]+)*)\|$")
_UNITS = ("usec", "MiB/s/rank")


def matches(head: Head) -> bool:
    """Whether the text holds the title of GPCNeT and its legend of patterns."""
    return _TITLE.search(head.text) is not None and _RANKS.search(head.text) is not None


@dataclass(slots=True)
class _Table:
    title: str = ""
    columns: tuple[str, ...] = ()

    @property
    def congested(self) -> bool:
        """Whether other traffic ran at the same time."""
        return "running with Congestion" in self.title


def _values(table: _Table, cells: list[str]) -> tuple[float, float, str]:
    """(average, 99th percentile, unit) of one row."""
    if len(cells) != len(table.columns) or cells[-1] not in _UNITS:
        raise ValueError(f"{len(cells)} cells ending in '{cells[-1][:20]}'; the header has {len(table.columns)}")
    by_name = dict(zip(table.columns, cells, strict=True))
    if "Avg" not in by_name or "99%" not in by_name:
        raise ValueError("the header has no columns Avg and 99%")
    average, tail = finite_number(by_name["Avg"]), finite_number(by_name["99%"])
    if average <= 0 or tail < 0:
        raise ValueError(f"{average:g} in table '{table.title[:40]}'")
    return average, tail, cells[-1]


def _observation(
    name: str, size_bytes: int, values: tuple[float, float, str], group_size: int | None, *, congested: bool, line: int
) -> LinkObservation | CollectiveObservation:
    average, tail, unit = values
    detail: dict[str, Scalar] = {"pattern": name, "congested": congested}
    if name == "Multiple Allreduce" and unit == "usec":
        detail["p99_s"] = tail / 1e6
        timing = Timing(average / 1e6, "mean")
        return CollectiveObservation("all_reduce", size_bytes, group_size, timing, detail=detail, row=line)
    in_seconds = unit == "usec"
    detail["p99_s" if in_seconds else "p99_bytes_per_s"] = tail / 1e6 if in_seconds else tail * (1 << 20)
    return LinkObservation(
        "network",
        "node:0",
        "node:1",
        "unknown",
        size_bytes,
        None if in_seconds else average * (1 << 20),
        average / 1e6 if in_seconds else None,
        statistic="mean",
        method="gpcnet, per rank",
        detail=detail,
        row=line,
    )


def _parsed(
    file: SourceFile, options: ReadOptions, imported: Imported
) -> tuple[list[LinkObservation | CollectiveObservation], int | None, int | None]:
    """(observations, ranks of the job, nodes)."""
    found: list[LinkObservation | CollectiveObservation] = []
    ranks = nodes = None
    table = _Table()
    group_size = given_whole(options, "group_size")
    for line in short_lines(file, imported):
        text = line.text.strip()
        if title := _TITLE.search(text):
            imported.tool_version = title.group(1)
        elif counted := _RANKS.search(text):
            ranks, nodes = int(counted.group(1)), int(counted.group(2))
        elif heading := _TABLE.match(text):
            table = _Table(heading.group(1))
        elif header := _HEADER.match(text):
            table.columns = tuple(cell.strip() for cell in header["cells"].split("|"))
        elif row := _ROW.match(text):
            name = row["name"]
            if "Key Results" in table.title or name in _CONGESTORS:
                imported.skip("impact factors and congestors")
                continue
            try:
                values = _values(table, [cell.strip() for cell in row["cells"].split("|")])
                size_bytes, busy = int(row["size"]), table.congested
                found.append(_observation(name, size_bytes, values, group_size, congested=busy, line=line.number))
            except ValueError as error:
                imported.bad(line.number, str(error), "check the line against the original output")
    return found, ranks, nodes


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every row with a unit; ratios are left out."""
    imported = Imported(tool="gpcnet")
    found, ranks, nodes = _parsed(files[0], options, imported)
    batches = Batches()
    batch = batches.of(environment_of(options, communication_library="mpi", num_nodes=nodes or None))
    batch.links.extend(each for each in found if isinstance(each, LinkObservation))
    batch.collectives.extend(each for each in found if isinstance(each, CollectiveObservation))
    if ranks is not None:
        imported.facts["num_ranks"] = ranks
    if batch.collectives and given_whole(options, "group_size") is None:
        imported.flag("group-size-unknown", "the ranks of one of the many allreduce groups are not printed")
    return finished(imported, batches, files[0], "no row with a unit", "did the benchmark run to its end?")


FORMAT = Format("gpcnet", "GPCNeT network tests (text)", matches, read)
