"""The text output of nvbandwidth: a header, then for each test a description, a matrix and its sum."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from profiles.importers.nvbandwidth.matrix import Cell, Test, is_description, store_cell
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.importing.number_cells import finite_number
from profiles.observations.records import LinkObservation

_FACTS = {
    "nvbandwidth Version": "version",
    "CUDA Runtime Version": "cuda",
    "Driver Version": "driver_version",
}
_FACT = re.compile(r"^\s*(nvbandwidth Version|CUDA Runtime Version|Driver Version):\s*(\S+)")
_DEVICE = re.compile(r"^\s*Device (\d{1,6}): (.+?)\s*(?:\([0-9A-Fa-f:.]+\))?\s*$")
_PROCESS = re.compile(r"^\s*Process\s+(\d{1,9}) \(([^)]*)\): device (\d+): (.+?)\s*(?:\([0-9A-Fa-f:.]+\))?\s*$")
_RUNNING = re.compile(r"^\s*Running ([A-Za-z]\w+)\.?\s*$")
_SUM = re.compile(r"^\s*SUM (\w+)\s+(\S+)\s*$")
_INDICES = re.compile(r"^\s*\d{1,6}(?:\s+\d{1,6})*\s*$")
_ROW = re.compile(r"^\s*\d{1,6}\s+\S")


@dataclass(slots=True)
class TextForm:
    """The state of reading: header facts, the test and matrix at hand, and the links so far."""

    imported: Imported
    facts: dict[str, str] = field(default_factory=dict)
    devices: dict[int, str] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    links: list[LinkObservation] = field(default_factory=list)
    test: str = ""
    matrix: Test | None = None
    columns: list[int] = field(default_factory=list)
    total: float = 0.0

    def line(self, line: LogLine) -> None:
        """Take in one line."""
        text = line.text
        if fact := _FACT.match(text):
            self.facts[_FACTS[fact.group(1)]] = fact.group(2)
        elif process := _PROCESS.match(text):
            self.devices[int(process.group(1))] = process.group(4)
            self.hosts.add(process.group(2))
        elif device := _DEVICE.match(text):
            self.devices[int(device.group(1))] = device.group(2)
        elif running := _RUNNING.match(text):
            self.test, self.matrix = running.group(1), None
        elif text.strip().startswith("Waived"):
            self.imported.skip("test waived")
        elif text.strip().upper().startswith("ERROR"):
            self.imported.flag(
                "test-failed", f"the test {self.test or 'without a name'} reported an error", line.number
            )
        elif is_description(text):
            self.matrix, self.columns, self.total = Test(self.test, text.strip()), [], 0.0
        elif summed := _SUM.match(text):
            self.check_sum(line.number, summed.group(2))
        elif self.matrix is not None and not self.columns and _INDICES.match(text):
            self.columns = [int(index) for index in text.split()]
        elif self.matrix is not None and self.columns and _ROW.match(text):
            self.row(self.matrix, line.number, text.split())
        elif self.matrix is not None and not text.strip() and self.columns:
            self.columns = []

    def row(self, matrix: Test, number: int, cells: list[str]) -> None:
        """One row of the matrix: its index, then a cell for each column (none may be left out)."""
        if len(cells) != len(self.columns) + 1:
            self.imported.bad(number, f"{len(cells) - 1} cells for {len(self.columns)} columns", "is the row cut off?")
            return
        for column, cell in zip(self.columns, cells[1:], strict=True):
            link = store_cell(matrix, Cell(int(cells[0]), column, cell, number, number), self.imported)
            if link is not None:
                self.links.append(link)
                for value, unit in ((link.bandwidth_bytes_per_s, 1e9), (link.latency_s, 1e-9)):
                    self.total += value / unit if value is not None else 0.0

    def check_sum(self, number: int, printed: str) -> None:
        """The tool prints the sum of each matrix: a difference means missing or edited rows."""
        self.imported.skip("sum of a matrix")
        try:
            expected = finite_number(printed)
        except ValueError:
            return
        if self.matrix is not None and abs(self.total - expected) > 0.01 * len(self.links) + 1e-4 * abs(expected):
            what = f"the matrix of {self.test} adds up to {self.total:.2f}, the tool says {expected:.2f}"
            self.imported.flag("sum-mismatch", what, number)

    def environment(self) -> dict[str, Any]:
        """What the header says, for ``environment_of``."""
        return {
            "num_devices": len(self.devices) or None,
            "num_nodes": len(self.hosts) or None,
            "driver_version": self.facts.get("driver_version"),
            "runtime_version": cuda_version(self.facts.get("cuda", "")),
        }


def cuda_version(printed: str) -> str | None:
    """Version of CUDA as text: 12040 is 12.4; None where nothing is printed."""
    if not re.fullmatch(r"\d{4,6}", printed):
        return None
    return f"CUDA {int(printed) // 1000}.{int(printed) % 1000 // 10}"
