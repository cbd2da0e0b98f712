"""OSU Micro-Benchmarks, 5.x to 7.x: point-to-point and collectives over MPI, NCCL and others.

Recognised by a title with version: ``# OSU MPI-CUDA Allreduce Latency Test v7.5``.  A file may hold many tables.
Units: latency in us (mean over ranks and iterations), bandwidth in MB/s of 10^6 bytes.  Columns: ``Size`` with
``Avg Latency(us)`` [``Min``, ``Max``, ``Iterations``] or ``Bandwidth (MB/s)`` or ``MB/s Messages/s``; non-blocking
collectives print ``Overall``, ``Compute``, ``Pure Comm.`` and ``Overlap(%)``: the pure communication time is taken.
Traps: the size is one rank's part for allgather, gather, scatter and the piece for one peer for alltoall, so these
need the number of ranks (launch command in the file, or ``--set group_size=N``); reduce_scatter prints the whole
input; bi-directional bandwidth is the sum of both directions; min and max are over ranks, not iterations.
Source: OSU Micro-Benchmarks, c/util/osu_util_mpi.c, c/mpi/pt2pt/*, c/mpi/collective/*.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.importers.osu.rows import Table, looks_like_row, store_row
from profiles.importers.osu.titles import TITLE, Benchmark, benchmark_of, columns_of
from profiles.importing.collective_sizes import GROUP_SIZE_HINT
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.launch_command import Launched, launched
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile

_TITLE_LINE = re.compile(TITLE.pattern, re.MULTILINE)
_BUFFERS = re.compile(r"osu_\w+\b[^#\n]*?\s([DHM])\s+([DHM])\b")
_DATATYPE = re.compile(r"#\s*Datatype:\s*(\w+)")
_PAIRS = re.compile(r"#\s*\[ pairs: (\d{1,9}) \](?: \[ window size: (\d{1,9}) \])?")
_DTYPES = {
    "MPI_CHAR": "int8", "MPI_INT": "int32", "MPI_FLOAT": "fp32", "MPI_DOUBLE": "fp64",
    "ncclChar": "int8", "ncclInt8": "int8", "ncclInt": "int32", "ncclFloat": "fp32", "ncclHalf": "fp16",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether the text holds a title line of an OSU benchmark with its version."""
    return _TITLE_LINE.search(head.text) is not None


@dataclass(slots=True)
class _Reader:
    file: SourceFile
    options: ReadOptions
    imported: Imported
    batches: Batches = field(default_factory=Batches)
    launch: Launched | None = None
    buffers: str = ""
    table: Table | None = None

    def line(self, number: int, text: str) -> None:
        command = launched(text)
        if command is not None and (command.num_ranks or command.num_nodes):
            self.launch, self.buffers = command, ""
        if buffers := _BUFFERS.search(text):
            self.buffers = " ".join(buffers.groups())
        if benchmark := benchmark_of(text):
            self.begin(benchmark)
        elif self.table is not None:
            self.inside(self.table, number, text)

    def begin(self, benchmark: Benchmark) -> None:
        self.imported.tool_version = self.imported.tool_version or benchmark.version
        ranks = given_whole(self.options, "group_size") or (self.launch.num_ranks if self.launch else None)
        nodes = given_whole(self.options, "num_nodes") or (self.launch.num_nodes if self.launch else None)
        per_node = given_whole(self.options, "devices_per_node") or (
            self.launch.ranks_per_node if self.launch else None
        )
        pairs: int | None = None
        if benchmark.measure == "latency":
            # Messages go between two ranks; "multi" benchmarks run many such pairs at once.
            several = "multi" in benchmark.name.casefold()
            pairs, per_node = (ranks // 2 if ranks else None, None) if several else (1, per_node)
            ranks = 2
        environment = environment_of(
            self.options,
            communication_library=benchmark.library.casefold(),
            num_nodes=nodes,
            num_devices=ranks if benchmark.accelerator else None,
        )
        self.table = Table(
            benchmark, self.batches.of(environment), ranks, nodes, per_node, self.buffers, concurrent_groups=pairs
        )

    def inside(self, table: Table, number: int, text: str) -> None:
        if match := _DATATYPE.match(text.strip()):
            table.dtype = _DTYPES.get(match.group(1), match.group(1).casefold())
        elif match := _PAIRS.match(text.strip()):
            table.detail["pairs"] = int(match.group(1))
            if match.group(2):
                table.detail["window_size"] = int(match.group(2))
        elif text.lstrip().startswith("#"):
            self.header(table, number, text)
        elif looks_like_row(table, cells := text.split()):
            store_row(table, number, cells, self.imported)

    def header(self, table: Table, number: int, text: str) -> None:
        try:
            table.columns = columns_of(text) or table.columns
        except ValueError as error:
            raise DocumentInvalid(
                str(error), where=f"{self.file.where}:{number}", hint="units other than us and MB/s are not read"
            ) from None


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every table of the file: collectives and latencies as collectives, bandwidths as links."""
    file = files[0]
    imported = Imported(tool="osu-micro-benchmarks")
    reader = _Reader(file, options, imported)
    for line in short_lines(file, imported):
        reader.line(line.number, line.text)
    unconverted = imported.skipped.get("the group size is not known", 0)
    if unconverted:
        what = f"{unconverted} rows print one rank's part, which cannot be converted without the number of ranks"
        imported.flag("group-size-unknown", what)
    hint = GROUP_SIZE_HINT if unconverted else "check that the benchmark ran to its end"
    return finished(imported, reader.batches, file, "no row of results could be stored", hint)


FORMAT = Format("osu", "OSU Micro-Benchmarks (text)", matches, read)
