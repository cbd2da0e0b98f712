"""OSU benchmarks by title ("# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.5"), and their columns.

Titles differ in little ways between 5.x and 7.x ("Bi-Directional Bandwidth", "All-to-All Personalized Exchange
Latency", "Allgatherv Persistent Latency"), so they are compared by their letters alone.
Source: OSU Micro-Benchmarks 5.6 to 7.5, c/mpi/*/osu_*.c and c/util/osu_util_mpi.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from profiles.observations.records import CollectiveOperation

Measure = Literal["collective", "latency", "bandwidth", "message_rate"]

TITLE = re.compile(
    r"#[ \t]{0,8}(?:OSU|OMB)(?:[- ]?Py(?:thon)?)?\s+(?P<library>MPI|NCCL|RCCL|XCCL|HCCL|OpenSHMEM|UPC\+\+|UPC)"
    r"(?P<accelerator>-[A-Z]+(?:[- ]MANAGED)?)?(?P<call>_\w{1,40})?[ \t]{0,8}"
    r"(?P<name>[^#\n]{0,120}?)(?:[ \t]{1,8}Test)?[ \t]{1,8}v(?P<version>\d[\w.]*)[ \t\r]*$"
)
COLUMN = re.compile(
    r"(?P<size>Size)(?=\s|$)|(?P<bandwidth>(?:Avg )?Bandwidth ?\(MB/s\)|MB/s)|(?P<message_rate>Messages/s)"
    r"|(?P<minimum>Min Lat(?:ency)? ?\(us\))|(?P<maximum>Max Lat(?:ency)? ?\(us\))"
    r"|P(?P<percentile>\d\d?)(?: Tail)? (?P<percentile_of>Lat|BW) ?\((?:us|MB/s)\)"
    r"|(?P<latency>(?:Avg )?Lat(?:ency)? ?\(us\))|(?P<iterations>Iterations)|(?P<validation>Validation)"
    r"|(?P<overall>Overall ?\(us\))|(?P<compute>Compute ?\(us\))|(?P<init>(?:Coll\. )?Init(?: avg)? ?\(us\))"
    r"|(?P<test>MPI_Test ?\(us\))|(?P<wait>(?:MPI_)?Wait(?: avg)? ?\(us\))"
    r"|(?P<min_pure>Min Comm\.? ?\(us\))|(?P<max_pure>Max Comm\.? ?\(us\))|(?P<pure>Pure Comm\.? ?\(us\))"
    r"|(?P<overlap>Overlap ?\(%\))"
)
_OPERATIONS: dict[str, CollectiveOperation] = {
    "allreduce": "all_reduce", "allgather": "all_gather", "allgatherv": "all_gather",
    "reducescatter": "reduce_scatter", "reducescatterblock": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all", "alltoallw": "all_to_all",
    "bcast": "broadcast", "broadcast": "broadcast", "reduce": "reduce", "gather": "gather", "gatherv": "gather",
    "scatter": "scatter", "scatterv": "scatter", "barrier": "barrier",
}  # fmt: skip
_LATENCIES = ("latency", "multilatency", "multithreadedlatency", "multiprocesslatency", "persistentlatency")
_BANDWIDTHS = {"bandwidth": False, "bidirectionalbandwidth": True, "persistentbandwidth": False}
_ONE_SIDED = {"putbandwidth": False, "getbandwidth": False, "putbidirectionalbandwidth": True}
_ONE_SIDED_LATENCIES = ("putlatency", "getlatency")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What one title announces.  ``measure`` None: known, but not something that is stored (``name`` says what)."""

    name: str
    version: str
    library: str
    accelerator: str
    measure: Measure | None
    operation: CollectiveOperation = "unknown"
    both_ways: bool = False
    blocking: bool = True


def benchmark_of(line: str) -> Benchmark | None:
    """The benchmark that a title line announces; None for any other line."""
    match = TITLE.search(line)
    if match is None:
        return None
    name = ((match["call"] or "").lstrip("_") + " " + match["name"]).strip()
    plain = re.sub(r"[^a-z+]", "", name.casefold()).removesuffix("test")
    measure, operation, both_ways = _measure(plain)
    return Benchmark(
        name, match["version"], match["library"], (match["accelerator"] or "").lstrip("-"), measure, operation,
        both_ways, blocking="nonblocking" not in plain,
    )  # fmt: skip


def _measure(plain: str) -> tuple[Measure | None, CollectiveOperation, bool]:
    if plain.startswith("multiplebandwidth"):
        return "message_rate", "unknown", False
    for bandwidths in (_BANDWIDTHS, _ONE_SIDED):
        if plain in bandwidths:
            return "bandwidth", "unknown", bandwidths[plain]
    if plain in _LATENCIES or plain in _ONE_SIDED_LATENCIES:
        return "latency", "send_recv", False
    core = plain.removeprefix("nonblocking").removeprefix("persistent").removesuffix("latency")
    core = core.removesuffix("persistent").removesuffix("personalizedexchange")
    operation = _OPERATIONS.get(core)
    return ("collective", operation, False) if operation else (None, "unknown", False)


def columns_of(line: str) -> list[str] | None:
    """Names of a header's columns (groups of ``COLUMN``), None if the line is none.  Raises ValueError for others.

    The unit is part of each name: a header in another unit is an error, never a guess.
    """
    text = line.lstrip("# \t")
    if not line.lstrip().startswith("#") or not COLUMN.match(text):
        return None
    names: list[str] = []
    position = 0
    for match in COLUMN.finditer(text):
        if text[position : match.start()].strip():
            break
        kind = match.lastgroup or ""
        names.append(f"p{match['percentile']}_{match['percentile_of']}" if match["percentile"] else kind)
        position = match.end()
    if rest := text[position:].strip():
        raise ValueError(f"the column '{rest[:40]}' is not one that OSU benchmarks print")
    return names
