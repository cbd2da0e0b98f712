"""Intel MPI Benchmarks (IMB-MPI1, IMB-NBC), 3.x to 2021: PingPong, bandwidths and collectives.

Recognised by ``# Benchmarking PingPong`` over a header with ``#bytes #repetitions`` (or ``#repetitions`` alone).
Columns: ``t[usec] Mbytes/sec``; ``t_min t_max t_avg [Mbytes/sec]`` (over ranks); ``t_ovrl t_pure t_CPU overlap[%]``
(the pure time is taken); ``Mbytes/sec Msg/sec`` (Uniband, Biband); ``Group`` in front when groups run at once.
Units: times in us.  ``Mbytes/sec`` is 10^6 in new and 2^20 in old versions (the change came before 2018 as the real
2018 output shows), so it is never taken on trust: times are stored where there are any, and for Uniband and Biband
the unit is worked out from messages a second x size.
Traps: ``#bytes`` is one rank's part for Allgather, Gather, Scatter, Reduce_scatter_block and the piece for one peer
for Alltoall; the whole input for Reduce_scatter.  PingPong times are one way (half a round trip).
Source: intel/mpi-benchmarks src_c/IMB_output.c, IMB_*.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.launch_command import Launched, launched
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, LinkObservation, Scalar
from profiles.observations.timing import Timing

_SUITE = re.compile(r"Intel ?\(R\) MPI Benchmarks (\d[\w.]*)")
_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(Multi-)?(\w+)\s*$", re.MULTILINE)
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*(\d{1,9})")
_GROUPS = re.compile(r"#\s*\(\s*(\d{1,9}) groups of (\d{1,9}) processes")
_COLUMN = re.compile(r"Group|#bytes|#repetitions|t(?:_\w+)?\[usec\]|Mbytes/sec|Msg/sec|overlap\[%\]|defects")
_HEADER = re.compile(r"^[ \t]*(?:Group[ \t]+)?(?:#bytes[ \t]+)?#repetitions[ \t]", re.MULTILINE)
_FAILURES = {"out-of-mem.": "out of memory", "int-overflow.": "integer overflow", "time-out.": "time out"}
_OPERATIONS: dict[str, tuple[CollectiveOperation, bool]] = {
    # name: operation, and whether the printed size is one rank's part
    "pingpong": ("send_recv", False), "pingpongspecificsource": ("send_recv", False),
    "pingping": ("send_recv", False), "pingpingspecificsource": ("send_recv", False),
    "sendrecv": ("send_recv", False), "sendrecvreplace": ("send_recv", False),
    "allreduce": ("all_reduce", False), "reduce": ("reduce", False), "bcast": ("broadcast", False),
    "reducescatter": ("reduce_scatter", False), "reducescatterblock": ("reduce_scatter", True),
    "allgather": ("all_gather", True), "allgatherv": ("all_gather", True), "alltoall": ("all_to_all", True),
    "alltoallv": ("all_to_all", True), "gather": ("gather", True), "gatherv": ("gather", True),
    "scatter": ("scatter", True), "scatterv": ("scatter", True), "barrier": ("barrier", False),
}  # fmt: skip
_REDUCING = frozenset({"all_reduce", "reduce", "reduce_scatter"})


def matches(head: Head) -> bool:
    """Whether the text holds a benchmark title of IMB and one of its column headers."""
    return _BENCHMARK.search(head.text) is not None and _HEADER.search(head.text) is not None


@dataclass(slots=True)
class _Table:
    name: str
    num_processes: int | None = None
    num_groups: int = 1
    columns: list[str] = field(default_factory=list)

    @property
    def plain(self) -> str:
        """Name without its dialect: Iallreduce_pure and Allreduce are the same operation."""
        plain = self.name.casefold().removesuffix("_pure").replace("_", "")
        return plain if plain in _OPERATIONS or plain in ("uniband", "biband") else plain.removeprefix("i")


@dataclass(slots=True)
class _Reader:
    imported: Imported
    options: ReadOptions
    batches: Batches = field(default_factory=Batches)
    launch: Launched | None = None
    table: _Table | None = None
    reductions: str = ""

    def line(self, number: int, text: str) -> None:
        if suite := _SUITE.search(text):
            self.imported.tool_version = self.imported.tool_version or suite.group(1)
        elif "MPI_Datatype for reductions" in text:
            self.reductions = text.rpartition(":")[2].strip()
        elif begin := _BENCHMARK.search(text):
            self.table = _Table(begin.group(2))
        elif self.table is None:
            command = launched(text)
            self.launch = command if command is not None and command.num_ranks else self.launch
        elif processes := _PROCESSES.search(text):
            self.table.num_processes = int(processes.group(1))
        elif groups := _GROUPS.search(text):
            self.table.num_groups, self.table.num_processes = int(groups.group(1)), int(groups.group(2))
        elif _HEADER.match(text):
            self.table.columns = _COLUMN.findall(text)
        elif self.table.columns and re.match(r"\s*[-+]?\d", text):
            self.row(self.table, number, text.split())

    def row(self, table: _Table, number: int, cells: list[str]) -> None:
        failure = next(
            (_FAILURES[cell] for cell in (word.rstrip(";") for word in cells[1:4]) if cell in _FAILURES), None
        )
        if failure is None and len(cells) != len(table.columns):
            # A date or a message between tables may begin with a digit too; a row goes on with a number.
            if len(cells) == 1 or re.match(r"[-+]?\.?\d|nan|inf", cells[1]):
                self.imported.bad(
                    number, f"{len(cells)} columns, the header has {len(table.columns)}", "is it cut off?"
                )
            return
        try:
            self.store(table, number, cells, failure)
        except ValueError as error:
            self.imported.bad(number, str(error), "check the line against the original output")

    def store(self, table: _Table, number: int, cells: list[str], failure: str | None) -> None:
        values = {
            name: finite_number(cell) for name, cell in zip(table.columns, cells, strict=False) if failure is None
        }
        size_bytes = whole_number(cells[table.columns.index("#bytes")]) if "#bytes" in table.columns else 0
        if size_bytes < 0:
            raise ValueError(f"the size is {size_bytes}")
        if table.plain not in _OPERATIONS and table.plain not in ("uniband", "biband"):
            self.imported.skip(f"{table.name} is not a measurement that is stored")
        elif size_bytes == 0 and "#bytes" in table.columns:
            self.imported.skip("size 0")
        elif table.plain in _OPERATIONS:
            self.collective(table, number, size_bytes, values, failure)
        elif failure is None:
            self.link(table, number, size_bytes, values)

    def collective(
        self, table: _Table, number: int, size_bytes: int, values: dict[str, float], failure: str | None
    ) -> None:
        operation, is_part = _OPERATIONS[table.plain]
        ranks = table.num_processes
        if is_part and ranks is None:
            raise ValueError("the number of processes is not printed above the table")
        timing = None if failure else _timing(values)
        if timing is None and not failure:
            self.imported.skip("time printed as 0.00")
            return
        nodes, per_node = self.placement(ranks)
        defects = values.get("defects", 0.0) > 0
        self.batch(nodes).collectives.append(
            CollectiveObservation(
                operation,
                size_bytes * (ranks or 1) if is_part else size_bytes,
                ranks,
                timing,
                dtype="fp32" if operation in _REDUCING and self.reductions == "MPI_FLOAT" else "",
                num_nodes=nodes,
                devices_per_node=per_node,
                concurrent_groups=table.num_groups,
                launch="back_to_back",
                detail=_detail(table, size_bytes if is_part else None, values),
                ok=failure is None and not defects,
                error=failure or ("wrong results" if defects else ""),
                row=number,
            )
        )

    def link(self, table: _Table, number: int, size_bytes: int, values: dict[str, float]) -> None:
        """Uniband and Biband: all pairs together; the unit of Mbytes follows from the message rate."""
        rate = values["Msg/sec"] * size_bytes
        megabytes = values["Mbytes/sec"]
        unit = next((unit for unit in (1_000_000, 1 << 20) if abs(megabytes * unit - rate) <= 0.02 * rate), None)
        if rate == 0 or unit is None:
            self.imported.skip("bandwidth too small to tell its unit")
            return
        nodes, _ = self.placement(table.num_processes)
        detail: dict[str, Scalar] = {"benchmark": table.name}
        if table.num_processes is not None:
            detail["pairs"] = table.num_processes // 2
        self.batch(nodes).links.append(
            LinkObservation(
                "network",
                "node:0",
                "node:1",
                "both_ways" if table.plain == "biband" else "one_way",
                size_bytes,
                rate if values["Msg/sec"] >= 10_000 else megabytes * unit,
                statistic="mean",
                num_samples=int(values["#repetitions"]),
                method=f"imb {table.name}",
                detail=detail,
                row=number,
            )
        )

    def placement(self, ranks: int | None) -> tuple[int | None, int | None]:
        """(nodes, ranks on each): known for sure only where the table uses all ranks of the launch."""
        nodes, per_node = given_whole(self.options, "num_nodes"), given_whole(self.options, "devices_per_node")
        if self.launch is not None and self.launch.num_ranks == ranks:
            nodes, per_node = nodes or self.launch.num_nodes, per_node or self.launch.ranks_per_node
        return nodes, per_node

    def batch(self, nodes: int | None) -> Batch:
        return self.batches.of(environment_of(self.options, communication_library="mpi", num_nodes=nodes))


def _timing(values: dict[str, float]) -> Timing | None:
    """The time of one operation; None where it was printed as 0.00."""
    mean = next((values[name] for name in ("t_avg[usec]", "t[usec]", "t_pure[usec]") if name in values), None)
    if mean is None:
        raise ValueError("the table has no column with a time")
    if mean == 0:
        return None
    samples = values.get("#repetitions")
    if samples is not None and (samples < 1 or samples != int(samples)):
        raise ValueError(f"{samples:g} repetitions")
    low, high = values.get("t_min[usec]"), values.get("t_max[usec]")
    return Timing(
        mean / 1e6,
        "mean",
        None if samples is None else int(samples),
        min_s=None if low is None else low / 1e6,
        max_s=None if high is None else high / 1e6,
    )


def _detail(table: _Table, printed: int | None, values: dict[str, float]) -> dict[str, Scalar]:
    detail: dict[str, Scalar] = {"benchmark": table.name}
    if printed is not None:
        detail["printed_size_bytes"] = printed
    if "t_min[usec]" in values:
        detail["spread_over"] = "ranks"
    if "overlap[%]" in values:
        detail["overlap_percent"] = values["overlap[%]"]
    if "Group" in values:
        detail["group"] = int(values["Group"])
    return detail


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every table of the file; transfers between two ranks as send_recv, Uniband and Biband as links."""
    imported = Imported(tool="intel-mpi-benchmarks")
    reader = _Reader(imported, options)
    for line in short_lines(files[0], imported):
        reader.line(line.number, line.text)
    hint = "check that the benchmark ran to its end"
    return finished(imported, reader.batches, files[0], "no row of results could be stored", hint)


FORMAT = Format("imb", "Intel MPI Benchmarks (text)", matches, read)
