"""ucx_perftest (UCX): bandwidth or one-way latency of one message size, as a box with progress rows, or CSV (``-v``).

Recognised by the box header ``| # iterations | typical | average | overall | ...`` under ``latency (usec)`` or
``overhead (usec)`` and ``bandwidth (MB/s)``, or by the CSV header ``iterations,typical_lat,...``.
Units: MB of 2^20 bytes a second, usec.  The last row of a test (``Final:`` in newer versions) holds the overall
values; earlier rows are progress.  Latency tests give half a round trip; in bandwidth tests the "latency" is the time
per message, so it is kept only where the test is known to be a latency test.
Traps: the message size is in the ``Message size:`` line or the command, often neither: then it follows from
bandwidth x time per message (flag ``size-derived``).
Source: openucx/ucx src/tools/perf/perftest.c (print_progress) and lib/libperf.c (ucx_perf_calc_result).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import LinkKind, LinkObservation, Scalar

_BOX = re.compile(r"\|\s*# iterations\s*\|[^|\n]*\|\s*average\s*\|\s*overall\s*\|")
_UNITS = re.compile(r"(latency|overhead) \(usec\)\s*\|\s*bandwidth \((MB/s)\)")
_CSV = re.compile(
    r"iterations,(?:typical|[\d.]+_?percentile)_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr"
)
_FIELD = re.compile(r"^\s*\|\s*(Test|Message size|Send memory|Recv memory|API):\s+(.*?)\s*\|")
_COMMAND = re.compile(r"ucx_perftest\b.*?\s-t\s*(\w+)(?:.*?\s-s\s*(\d{1,15})(?=\s|$))?")
_BATCH_NAME = re.compile(r"^\s*\+([A-Za-z][\w/.:]*)-+\+")
_ROW = re.compile(r"^\s*(?:\[thread \d+\]|Final:)?\s*((?:[-+\d.,naif]+\s+){7}[-+\d.,naif]+)\s*$")
_VERSION = re.compile(r"UCX\s+INFO\s+Version (\S+)")
_MEGABYTE = float(1 << 20)


def matches(head: Head) -> bool:
    """Whether the text holds the box header or the CSV header of ucx_perftest."""
    return _CSV.search(head.text) is not None or (
        _BOX.search(head.text) is not None and _UNITS.search(head.text) is not None
    )


@dataclass(slots=True)
class _Test:
    """One test: what was printed about it, and its last row."""

    fields: dict[str, str] = field(default_factory=dict)
    line: int = 0
    cells: list[str] = field(default_factory=list)

    @property
    def is_latency(self) -> bool | None:
        """Whether it is a ping-pong; None where nothing says so."""
        name = f"{self.fields.get('command', '')} {self.fields.get('Test', '')} {self.fields.get('batch', '')}"
        if re.search(r"_lat\b|latency\b(?! /)", name):
            return True
        if re.search(r"_bw\b|_mr\b|bandwidth|\bget\b|message rate", name) or self.fields.get("column") == "overhead":
            return False
        return None


@dataclass(slots=True)
class _Reader:
    imported: Imported
    tests: list[_Test] = field(default_factory=list)
    common: dict[str, str] = field(default_factory=dict)
    fresh: bool = True
    wiring: set[str] = field(default_factory=set)
    csv: bool = False

    def line(self, number: int, text: str) -> None:
        if units := _UNITS.search(text):
            self.common["column"] = units.group(1)
        elif command := _COMMAND.search(text):
            self.fresh, self.common["command"] = True, command.group(1)
            self.common.update({"Message size": command.group(2)} if command.group(2) else {})
        elif header := _FIELD.match(text):
            self.fresh = True
            self.common[header.group(1)] = header.group(2)
        elif batch := _BATCH_NAME.match(text):
            self.fresh, self.common["batch"] = True, batch.group(1)
        elif version := _VERSION.search(text):
            self.imported.tool_version = version.group(1)
        elif _CSV.search(text):
            self.csv = self.fresh = True
        elif row := _ROW.match(text.replace(",", " ") if self.csv else text):
            self.row(number, row.group(1).split())
        elif re.match(r"^\s*(\[thread \d+\]|Final:)", text):
            self.imported.bad(number, "a row without eight numbers", "was the line cut off?")
        else:
            self.wiring.update(word for word in ("inter-node", "intra-node") if f"{word} cfg" in text)

    def row(self, number: int, cells: list[str]) -> None:
        # In CSV every row is a test of its own; in the box, rows of one test follow each other.
        if self.fresh or self.csv or not self.tests:
            self.tests.append(_Test(dict(self.common)))
            self.fresh = False
        else:
            self.imported.skip("progress row")
        self.tests[-1].line, self.tests[-1].cells = number, cells


def _observation(test: _Test, wiring: set[str], nodes: int | None, imported: Imported) -> LinkObservation:
    values = [finite_number(cell, thousands=True) for cell in test.cells]
    iterations, typical, _, time_us, _, bandwidth, _, rate = values
    if min(values) < 0 or iterations < 1 or (time_us == 0 and bandwidth == 0):
        raise ValueError("a negative number, or nothing measured")
    bytes_per_s = bandwidth * _MEGABYTE
    size, derived = _size(test, bytes_per_s, time_us, rate)
    if derived:
        imported.flag("size-derived", f"the message size ({size} bytes) follows from bandwidth and time", test.line)
    detail: dict[str, Scalar] = {name: test.fields[key][:60] for key, name in _DETAIL.items() if test.fields.get(key)}
    memory = detail.get("send_memory", detail.get("receive_memory", "host"))
    kind, source, target = _ends(wiring, nodes, str(memory))
    if test.is_latency is None:
        detail["time_per_message_s"] = time_us / 1e6
    return LinkObservation(
        kind,
        source,
        target,
        "one_way",
        size,
        bytes_per_s if bytes_per_s and not test.is_latency else None,
        (typical or time_us) / 1e6 if test.is_latency else None,
        statistic="median" if test.is_latency and typical else "mean",
        num_samples=int(iterations),
        method=f"ucx_perftest {test.fields.get('command', '')}".strip(),
        detail=detail,
        row=test.line,
    )


_DETAIL = {"Test": "test", "Send memory": "send_memory", "Recv memory": "receive_memory", "batch": "batch"}


def _size(test: _Test, bytes_per_s: float, time_us: float, rate: float) -> tuple[int | None, bool]:
    """(message size, whether it was worked out)."""
    printed = test.fields.get("Message size", "")
    if printed.isdecimal() and 0 < len(printed) < 16 and int(printed) > 0:
        return int(printed), False
    size = bytes_per_s * time_us / 1e6
    if size < 1 and rate:
        size = bytes_per_s / rate
    if not 0.5 <= size < 2**48:
        return None, False
    # Sizes are powers of two in practice; the printed digits are good to a part in ten thousand.
    power = 1 << max(0, round(size).bit_length() - 1)
    near = min((power, power * 2), key=lambda candidate: abs(candidate - size))
    return (near if abs(near - size) <= 2e-3 * near else round(size)), True


def _ends(wiring: set[str], nodes: int | None, memory: str) -> tuple[LinkKind, str, str]:
    if nodes == 1 or (nodes is None and wiring == {"intra-node"}):
        on_device = memory.startswith(("cuda", "rocm", "ze"))
        return ("device_to_device", "device:0", "device:1") if on_device else ("host_memory", "host:0", "host:0")
    return "network", "node:0", "node:1"


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One link for each test: its final values."""
    imported = Imported(tool="ucx_perftest")
    reader = _Reader(imported)
    for line in short_lines(files[0], imported):
        reader.line(line.number, line.text)
    nodes = given_whole(options, "num_nodes")
    if nodes is None and not reader.wiring:
        imported.flag("placement-unknown", "whether the two sides shared a node is not said: --set num_nodes=1 or 2")
    nodes_known = nodes or (2 if "inter-node" in reader.wiring else 1 if reader.wiring else None)
    batches = Batches()
    environment = environment_of(options, communication_library="ucx", num_nodes=nodes_known)
    for test in reader.tests:
        try:
            batches.of(environment).links.append(_observation(test, reader.wiring, nodes, imported))
        except ValueError as error:
            imported.bad(test.line, str(error), "check the line against the original output")
    return finished(imported, batches, files[0], "no row of results", "did the benchmark run to its end?")


FORMAT = Format("ucx-perftest", "ucx_perftest (text and CSV)", matches, read)
