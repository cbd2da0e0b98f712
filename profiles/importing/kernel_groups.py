"""Kernel times: single launches, reduced to one observation for each name and launch size."""

from __future__ import annotations

from dataclasses import dataclass, field

from profiles.importing.duration_statistics import Durations
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.observations.records import OperatorObservation, Scalar

MAX_GROUPS = 500_000
_LONGEST_NAME = 400


@dataclass(slots=True)
class KernelGroups:
    """Durations by (name, grid, block)."""

    groups: dict[tuple[str, str, str], tuple[Durations, int | None]] = field(default_factory=dict)
    num_left_out: int = 0

    def add(self, name: str, grid: str, block: str, ticks: int, row: int | None = None) -> None:
        """Add one launch.  Raises ValueError for a negative duration, OverflowError beyond 2^63 ticks."""
        if ticks < 0:
            raise ValueError("the kernel ends before it starts")
        key = (name, grid, block)
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= MAX_GROUPS:
                self.num_left_out += 1
                return
            group = self.groups[key] = (Durations(), row)
        group[0].add(ticks)

    def store(self, batch: Batch, imported: Imported, ticks_per_s: float) -> None:
        """Add an observation for each group; those without a duration are bad rows."""
        collectives = 0
        for (name, grid, block), (durations, row) in self.groups.items():
            operator = kernel_class(name)
            detail: dict[str, Scalar] = {key: text for key, text in (("grid", grid), ("block", block)) if text}
            if operator == "collective":
                detail["operation"] = collective_operation(name)
                collectives += len(durations)
            try:
                timing = durations.timing(ticks_per_s)
            except ValueError as error:
                imported.bad(row if row is not None else name[:80], str(error))
                continue
            batch.operators.append(OperatorObservation(operator, name[:_LONGEST_NAME], timing, detail=detail, row=row))
        if self.num_left_out:
            imported.skip(f"kernels beyond {MAX_GROUPS:,} different ones", self.num_left_out)
        if collectives:
            imported.flag(
                "waiting-included",
                f"{collectives} communication kernels: their time includes waiting for the last rank, and their size "
                "is not recorded; they are stored as kernels, not as collectives",
            )
