"""The runs of a log: the lines of one table and what stands above it, kept apart from the next.

A run ends where the next begins: at a line that only a new start prints (version, ``Collective test starting``,
``# nThread``, the device list, a header of columns) after rows have been read, or where the size falls back to an
earlier one (a repetition whose header was cut away, ``-N`` cycles of rccl-tests).  Tables of several processes in one
log (``mpirun --tag-output`` with a program that was built without MPI) are told apart by the rank in the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from profiles.importers.nccl_tests import header
from profiles.importers.nccl_tests.columns import UNKNOWN, Columns, columns_of_header, unit_of_line
from profiles.importers.nccl_tests.rows import Row, RowInvalid, parse_row, starts_row
from profiles.importing.launch_command import Launched, launched
from profiles.importing.log_lines import LogLine

_NUMBERS = re.compile(r"\s*(?:[0-9.]+(?:e[-+]?\d+)?|N/A)(?:\s+(?:[0-9.]+(?:e[-+]?\d+)?|N/A))*")
_OUT_OF_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d{1,18})\s*(OK|FAILED)")


@dataclass(slots=True)
class Run:
    """One table.  ``bad`` are its damaged rows: line and reason."""

    columns: Columns | None = None
    rows: list[Row] = field(default_factory=list)
    ranks: list[header.Rank] = field(default_factory=list)
    test: str = ""
    """The program as the tool itself names it."""
    command: str = ""
    """The program as a command line above the table names it."""
    written_switches: str = ""
    switches: dict[str, int] = field(default_factory=dict)
    launch: Launched | None = None
    versions: header.Versions = field(default_factory=header.Versions)
    bad: list[tuple[int, str]] = field(default_factory=list)
    out_of_bounds: int = 0
    first_line: int = 0
    contradictory: set[int] = field(default_factory=set)
    """Lines whose size, time and bandwidth do not belong together."""
    bus_twice: bool = False
    """Whether both columns hold the bus bandwidth (all_gather and its like before 2.1)."""

    @property
    def begun(self) -> bool:
        """Whether rows, good or bad, have been read."""
        return bool(self.rows or self.bad)


@dataclass(slots=True)
class _Stream:
    """The table that one process is writing, and the left half of a row whose numbers have not come yet."""

    run: Run = field(default_factory=Run)
    pending: tuple[int, list[str]] | None = None


@dataclass(slots=True)
class Runs:
    """All runs of one file, in the order in which their tables begin, and what the file says about all of them."""

    found: list[Run] = field(default_factory=list)
    versions: header.Versions = field(default_factory=header.Versions)
    hosts: set[str] = field(default_factory=set)
    command: tuple[str, dict[str, int], str] | None = None
    launch: Launched | None = None
    _streams: dict[int | None, _Stream] = field(default_factory=dict)

    def read(self, lines: Iterable[LogLine]) -> None:
        """Take in every line."""
        for line in lines:
            self._take(line)

    def finish(self) -> None:
        """Report the rows that the end of the file cuts off."""
        for stream in self._streams.values():
            self._give_up_pending(stream)

    def _take(self, line: LogLine) -> None:
        stream = self._streams.setdefault(line.rank, _Stream())
        if self._row(stream, line) or not line.text.strip():
            return
        if self._start(stream, line.text) or self._context(stream, line.text):
            return
        if match := _OUT_OF_BOUNDS.search(line.text):
            stream.run.out_of_bounds = int(match.group(1))

    def _row(self, stream: _Stream, line: LogLine) -> bool:
        """Whether the line belongs to the table."""
        columns = stream.run.columns or UNKNOWN
        if stream.pending is not None and _NUMBERS.fullmatch(line.text):
            return self._continued(stream, line)
        try:
            row = parse_row(line.number, line.text, columns)
        except RowInvalid as error:
            words = starts_row(line.text)
            if words is not None and not _has_measurements(line.text, len(words)):
                stream.pending = (line.number, words)
                return True
            self._begun(stream, line.number)
            stream.run.bad.append((line.number, str(error)))
            return True
        if row is None:
            words = starts_row(line.text)
            if words is None:
                return False
            self._give_up_pending(stream)
            stream.pending = (line.number, words)
            return True
        self._give_up_pending(stream)
        self._add(stream, row)
        return True

    def _continued(self, stream: _Stream, line: LogLine) -> bool:
        """Put the numbers of a row behind its left half, which other output had cut off."""
        number, words = stream.pending or (line.number, [])
        words = [*words, *line.text.split()]
        columns = stream.run.columns or UNKNOWN
        if len(words) < 3 + len(columns.block) * columns.num_blocks and len(words) < 64:
            stream.pending = (number, words)
            return True
        stream.pending = None
        try:
            row = parse_row(number, " ".join(words), columns)
        except RowInvalid as error:
            self._begun(stream, number)
            stream.run.bad.append((number, str(error)))
            return True
        if row is not None:
            self._add(stream, row)
        return True

    def _give_up_pending(self, stream: _Stream) -> None:
        if stream.pending is not None:
            self._begun(stream, stream.pending[0])
            stream.run.bad.append((stream.pending[0], "the row breaks off before its measurements"))
            stream.pending = None

    def _begun(self, stream: _Stream, line: int) -> None:
        """Enter the run into the list when its first row comes."""
        run = stream.run
        if not run.begun:
            run.first_line = line
            run.command, run.switches, run.written_switches = self._commanded(run)
            run.launch = self.launch
            self.found.append(run)

    def _add(self, stream: _Stream, row: Row) -> None:
        run = stream.run
        if run.rows and row.size < run.rows[-1].size and _same_sweep(row, run.rows[-1]):
            stream.run = replace(run, rows=[], bad=[], out_of_bounds=0, contradictory=set())
        self._begun(stream, row.line)
        stream.run.rows.append(row)

    def _commanded(self, run: Run) -> tuple[str, dict[str, int], str]:
        """The command line for a run that begins: what the tool printed itself overrides what a shell showed."""
        if self.command is None:
            return run.command, run.switches, run.written_switches
        name, switches, written = self.command
        return name, {**switches, **run.switches}, written

    def _start(self, stream: _Stream, text: str) -> bool:
        """Whether the line belongs to the head of a run; begins the next run where rows have been read."""
        columns, rank = columns_of_header(text), header.rank_of_line(text)
        test, switches = header.program_of_line(text), header.switches_of_line(text)
        if test is not None and test[0] == "concluded":
            stream.run.test = stream.run.test or test[1]
            return True
        if columns is None and rank is None and test is None and switches is None:
            return False
        if stream.run.begun:
            self._give_up_pending(stream)
            stream.run = Run()
        run = stream.run
        if columns is not None:
            run.columns = columns
        if switches is not None and header.colons_in_settings(text):
            run.versions = merged(run.versions, header.Versions(library="rccl"))
            self.versions = merged(self.versions, header.Versions(library="rccl"))
        if rank is not None:
            run.ranks.append(rank)
            self.hosts.add(rank.host)
        if test is not None:
            run.test = test[1]
        if switches is not None:
            run.switches.update(switches)
        return True

    def _context(self, stream: _Stream, text: str) -> bool:
        """What stands between or above the tables: units, versions, command lines."""
        run = stream.run
        unit_s = unit_of_line(text)
        if unit_s is not None and run.columns is not None and not run.begun:
            run.columns = replace(run.columns, unit_s=unit_s, unit_printed=True)
            return True
        if run.columns is not None and not run.begun and "in-place" in text and "out-of-place" not in text:
            run.columns = replace(run.columns, only_in_place=True)
        versions = header.versions_of_line(text)
        if versions is not None:
            if versions.tests and run.begun:
                self._give_up_pending(stream)
                stream.run = run = Run()
            run.versions = merged(run.versions, versions)
            self.versions = merged(self.versions, versions)
        if launch := launched(text):
            self.launch = launch
        if (command := header.command_of_line(text)) is not None:
            self.command = command
        return versions is not None


def merged(first: header.Versions, second: header.Versions) -> header.Versions:
    """The second where it says something, else the first.  A version of NCCL in the file makes it no rccl-tests."""
    library = first.library if first.library == "rccl" else second.library or first.library
    return header.Versions(
        tests=second.tests or first.tests,
        library=library,
        library_version=second.library_version or first.library_version,
        runtime=second.runtime or first.runtime,
        transport=second.transport or first.transport,
    )


def _same_sweep(row: Row, before: Row) -> bool:
    """Whether two rows belong to one loop over sizes (``-d all``, ``-o all``, ``-r all`` print several)."""
    return (row.dtype, row.redop, row.root) == (before.dtype, before.redop, before.root)


def _has_measurements(text: str, num_left: int) -> bool:
    """Whether measurements follow the left half of a row, so that it is damaged rather than interrupted."""
    words = text.replace("|", " ").split()
    return len(words) > num_left and bool(re.fullmatch(r"-?[0-9.][^:]*|nan|inf|N/A", words[num_left]))
