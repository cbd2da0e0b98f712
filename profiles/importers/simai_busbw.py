"""SimAI bus bandwidth table (``busbw.yaml``): one number for each parallel axis and operation, no sizes, no times.

Recognised by sections ``TP:``, ``DP:``, ``EP:``, ``PP:`` with entries like ``allreduce,: 300`` (the comma is real, so
the file is not quite YAML: its first line is a bare name).  ``null`` = not given.
Units: none in the file; SimAI's documents say GB/s (flag ``unit-documented``: its simulator divides bytes by 2^30).
A bandwidth without size and group is no collective: each number becomes a link with the operation in its detail.
Source: aliyun/SimAI example/busbw.yaml, docs/Tutorial.md, astra-sim workload/Layer.cc.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import LinkObservation

_SECTION = re.compile(r"^[ \t]*(TP|DP|EP|PP|CP|DP_EP|[A-Z]{2}_[A-Z]{2})[ \t]*:[ \t]*(?:#.*)?$", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]*([a-z_]+)[ \t]*,?[ \t]*:[ \t]*([^\s#]+)[ \t]*(?:#.*)?$", re.MULTILINE)
_OPERATIONS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "busbw": "send_recv",
}


def matches(head: Head) -> bool:
    """Whether the text holds two axes and an operation with its bus bandwidth."""
    sections = {match.group(1) for match in _SECTION.finditer(head.text)}
    operations = {match.group(1) for match in _ENTRY.finditer(head.text)}
    return len(sections & {"TP", "DP", "EP", "PP"}) >= 2 and bool(operations & {"allreduce", "allgather", "alltoall"})


def _link(axis: str, name: str, text: str, nodes: int | None, line: int) -> LinkObservation:
    bandwidth = finite_number(text)
    if bandwidth <= 0:
        raise ValueError(f"{bandwidth:g} is not a bandwidth")
    # Tensor parallelism stays inside a node by its nature; the other axes cross the network unless the user says no.
    inside = axis == "TP" or nodes == 1
    return LinkObservation(
        "device_to_device" if inside else "network",
        "device:0" if inside else "node:0",
        "device:1" if inside else "node:1",
        "one_way",
        bandwidth_bytes_per_s=bandwidth * 1e9,
        method="busbw-table",
        detail={"axis": axis, "operation": _OPERATIONS[name], "bandwidth_is": "bus bandwidth"},
        row=line,
    )


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every number as a link with its axis and operation."""
    imported = Imported(tool="simai")
    links: list[LinkObservation] = []
    axis = ""
    nodes = given_whole(options, "num_nodes")
    for line in short_lines(files[0], imported):
        if section := _SECTION.match(line.text):
            axis = section.group(1)
        elif axis and (entry := _ENTRY.match(line.text)):
            name, text = entry.groups()
            if name not in _OPERATIONS:
                imported.skip(f"{name[:40]} is not an operation that is stored")
            elif text in ("null", "~", "None"):
                imported.skip("null")
            else:
                try:
                    links.append(_link(axis, name, text, nodes, line.number))
                except ValueError as error:
                    imported.bad(line.number, str(error), "write GB/s as a plain number, or null")
    if links:
        imported.flag("unit-documented", "the file prints no unit; GB/s of 10^9 bytes as SimAI's documents say")
    batches = Batches()
    batches.of(environment_of(options)).links.extend(links)
    return finished(imported, batches, files[0], "no bandwidth in the table", "give at least one number")


FORMAT = Format("simai-busbw", "SimAI bus bandwidth table (busbw.yaml)", matches, read)
