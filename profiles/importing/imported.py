"""What an importer found in a file: batches of observations, a topology, and everything worth telling.

An importer never decides whether bad rows are fatal: it reports them all, and ``read_sources`` refuses the file unless
the user said ``--keep-going``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profiles.observations.environment import Environment
from profiles.observations.records import (
    CollectiveObservation,
    IterationObservation,
    LinkObservation,
    OperatorObservation,
)
from profiles.observations.source import Flag

if TYPE_CHECKING:
    import pyarrow as pa

    from profiles.topology import Topology


@dataclass(slots=True)
class Batch:
    """Observations of one environment.  ``operator_table`` replaces ``operators`` where rows come by the million."""

    environment: Environment
    operators: list[OperatorObservation] = field(default_factory=list)
    collectives: list[CollectiveObservation] = field(default_factory=list)
    links: list[LinkObservation] = field(default_factory=list)
    iterations: list[IterationObservation] = field(default_factory=list)
    operator_table: pa.Table | None = None
    collective_table: pa.Table | None = None

    @property
    def num_observations(self) -> int:
        """Observations of all kinds."""
        tables: int = sum(table.num_rows for table in (self.operator_table, self.collective_table) if table is not None)
        return len(self.operators) + len(self.collectives) + len(self.links) + len(self.iterations) + tables


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be used: where (line from 1, or a JSON pointer), what is wrong, how to repair it."""

    where: str
    what: str
    hint: str = ""


@dataclass(slots=True)
class Imported:
    """The content of one source (a file, a folder, or several files that belong together)."""

    tool: str
    tool_version: str = ""
    batches: list[Batch] = field(default_factory=list)
    topology: Topology | None = None
    flags: list[Flag] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    facts: dict[str, str | int | float | bool] = field(default_factory=dict)
    """What else the source says in one value each: iterations of the benchmark, command line switches, overlap."""

    def flag(self, code: str, what: str, line: int | None = None) -> None:
        """Note something that a reader of the numbers should know."""
        self.flags.append(Flag(code=code, what=what, line=line))

    def bad(self, where: str | int, what: str, hint: str = "") -> None:
        """Report a row that cannot be used; an int is a line number."""
        self.bad_rows.append(BadRow(f"line {where}" if isinstance(where, int) else where, what, hint))

    def skip(self, reason: str, count: int = 1) -> None:
        """Count rows that are left out on purpose."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count

    @property
    def num_observations(self) -> int:
        """Observations of all batches."""
        return sum(batch.num_observations for batch in self.batches)
