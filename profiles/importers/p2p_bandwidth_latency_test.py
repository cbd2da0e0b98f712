r"""p2pBandwidthLatencyTest (CUDA sample): matrices of bandwidth and latency between the devices of one node.

Recognised by ``Unidirectional P2P=Enabled Bandwidth ... Matrix (GB/s)`` and its sisters above a row ``D\D 0 1 2``.
Units: GB of 10^9 bytes a second, latency in us (rows ``GPU``: device clock; ``CPU``: seen from the host).
Traps: bidirectional numbers are the sum; the diagonal is a copy inside one device and counts the read and the write;
with ``(P2P Writes)`` in any title the row is the source, in older outputs and with ``(P2P Reads)`` the column is;
where devices cannot reach each other the "enabled" matrix silently measures the path through the host (the
connectivity matrix says so).  Published outputs often hold one matrix only.
Source: NVIDIA/cuda-samples, p2pBandwidthLatencyTest.cu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.importing.number_cells import finite_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import LinkObservation, Scalar

_TITLE = re.compile(
    r"(?:(?P<way>Uni|Bi)directional )?P2P=(?P<peer>Enabled|Disabled) (?P<what>Bandwidth|Latency)"
    r"(?: \(P2P (?P<mechanism>Writes|Reads)\))? Matrix \((?P<unit>[^)]*)\)"
)
_CONNECTIVITY = re.compile(r"P2P Connectivity Matrix")
_HEADER = re.compile(r"^\s*(D\\+D|GPU|CPU)((?:\s+\d{1,4})+)\s*$")
_ROW = re.compile(r"^\s*(\d{1,4})\s+(\S.*)$")
_DEVICE = re.compile(r"^\s*Device: (\d{1,4}), ([^,]+), pciBusID")
_UNITS = {("Bandwidth", "GB/s"): 1e9, ("Latency", "us"): 1e-6}


def matches(head: Head) -> bool:
    """Whether the text holds a matrix title of the test and a matrix header."""
    return (
        _TITLE.search(head.text) is not None and re.search(r"^.{0,40}(?:D\\+D|GPU)\s+\d", head.text, re.M) is not None
    )


@dataclass(frozen=True, slots=True)
class _Matrix:
    both_ways: bool
    peer: bool
    is_latency: bool
    mechanism: str
    unit: float


@dataclass(slots=True)
class _Reader:
    imported: Imported
    mechanism: str = ""
    devices: dict[int, str] = field(default_factory=dict)
    links: list[LinkObservation] = field(default_factory=list)
    unreachable: set[tuple[int, int]] = field(default_factory=set)
    matrix: _Matrix | None = None
    in_connectivity: bool = False
    clock: str = ""
    columns: list[int] = field(default_factory=list)
    rows: set[int] = field(default_factory=set)
    """Rows of the matrix that have been read: lines of other programs may stand between them."""

    def line(self, line: LogLine) -> None:
        if device := _DEVICE.match(line.text):
            self.devices[int(device.group(1))] = device.group(2).strip()
        elif title := _TITLE.search(line.text):
            self.begin(line.number, title)
        elif _CONNECTIVITY.search(line.text):
            self.matrix, self.columns, self.in_connectivity = None, [], True
        elif (self.matrix or self.in_connectivity) and (header := _HEADER.match(line.text)):
            self.clock = {"GPU": "device", "CPU": "host"}.get(header.group(1), "")
            self.columns, self.rows = [int(each) for each in header.group(2).split()], set()
        elif self.columns and (row := _ROW.match(line.text)) and int(row.group(1)) in self.columns:
            self.row(line.number, int(row.group(1)), row.group(2).split())

    def begin(self, number: int, title: re.Match[str]) -> None:
        unit = _UNITS.get((title["what"], title["unit"]))
        self.columns, self.in_connectivity, self.matrix = [], False, None
        if unit is None:
            self.imported.bad(number, f"the unit '{title['unit'][:20]}' is not known", "GB/s and us are read")
            return
        self.matrix = _Matrix(
            title["way"] == "Bi",
            title["peer"] == "Enabled",
            title["what"] == "Latency",
            title["mechanism"] or self.mechanism,
            unit,
        )

    def row(self, number: int, row: int, cells: list[str]) -> None:
        if row in self.rows:
            return
        self.rows.add(row)
        if len(cells) != len(self.columns):
            self.imported.bad(number, f"{len(cells)} cells for {len(self.columns)} columns", "is the row cut off?")
            return
        for column, cell in zip(self.columns, cells, strict=True):
            if self.matrix is None:
                if cell == "0" and row != column:
                    self.unreachable.add((row, column))
                continue
            try:
                self.links.append(self.link(self.matrix, number, row, column, finite_number(cell)))
            except ValueError as error:
                self.imported.bad(number, str(error), "check the matrix against the original output")

    def link(self, matrix: _Matrix, number: int, row: int, column: int, value: float) -> LinkObservation:
        if value <= 0:
            raise ValueError(f"{value:g} for devices {row} and {column}")
        same = row == column
        source, target = (row, column) if matrix.mechanism == "Writes" else (column, row)
        detail: dict[str, Scalar] = {"peer_access": matrix.peer}
        if matrix.mechanism:
            detail["mechanism"] = matrix.mechanism.casefold()
        if matrix.peer and (row, column) in self.unreachable:
            detail["peer_access"] = False
        if matrix.is_latency:
            detail["clock"] = self.clock or "device"
        elif same:
            detail["counts"] = "read and write"
            if matrix.both_ways:
                detail["copies_at_once"] = 2
        return LinkObservation(
            "device_memory" if same else "device_to_device",
            f"device:{source}",
            f"device:{target}",
            "both_ways" if matrix.both_ways and not same else "one_way",
            bandwidth_bytes_per_s=None if matrix.is_latency else value * matrix.unit,
            latency_s=value * matrix.unit if matrix.is_latency else None,
            statistic="mean",
            method="p2pBandwidthLatencyTest",
            detail=detail,
            row=number,
        )


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every cell as a link between two devices, the diagonal as device memory."""
    file = files[0]
    imported = Imported(tool="p2pBandwidthLatencyTest")
    lines = list(short_lines(file, imported))
    written = next(
        (found["mechanism"] for line in lines if (found := _TITLE.search(line.text)) and found["mechanism"]), ""
    )
    reader = _Reader(imported, written)
    for line in lines:
        reader.line(line)
    names = set(reader.devices.values())
    if len(names) > 1:
        imported.flag("mixed-devices", f"the node holds {len(names)} kinds of device; the first one is named")
    if reader.unreachable:
        imported.flag("no-peer-access", f"{len(reader.unreachable)} ordered pairs of devices have no peer access")
    batches = Batches()
    device = next(iter(reader.devices.values()), "")
    environment = environment_of(options, device, num_devices=len(reader.devices) or None, num_nodes=1)
    batches.of(environment).links.extend(reader.links)
    return finished(imported, batches, file, "no matrix with values", "check that the benchmark ran to its end")


FORMAT = Format("p2p-bandwidth-latency-test", "CUDA sample p2pBandwidthLatencyTest (text)", matches, read)
