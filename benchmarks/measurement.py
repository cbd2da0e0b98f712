"""A measurement of a benchmark: a number beside its target, with the samples it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

Unit = Literal["s", "bytes", "1/s", "fraction"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table.

    ``samples``: every run, in order.  ``cpu_s``: processor seconds (user + system) of the same runs; on a machine that
    others use too they say more than wall time.  ``details``: what the runs answered.
    """

    name: str
    task: str
    unit: Unit
    target: float
    samples: tuple[float, ...]
    cpu_s: tuple[float, ...] = ()
    larger_is_better: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def measured(self) -> float:
        """Median of the samples."""
        return median(self.samples)

    @property
    def ratio(self) -> float:
        """Measured over target; at most 1 means reached (at least 1 where larger is better)."""
        return self.measured / self.target

    @property
    def reached(self) -> bool:
        """Whether the median reaches the target."""
        return self.ratio >= 1 if self.larger_is_better else self.ratio <= 1

    def as_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "name": self.name,
            "task": self.task,
            "unit": self.unit,
            "target": self.target,
            "measured": self.measured,
            "ratio": self.ratio,
            "reached": self.reached,
            "larger_is_better": self.larger_is_better,
            "samples": list(self.samples),
            "cpu_s": list(self.cpu_s),
            "details": self.details,
        }


@dataclass(frozen=True, slots=True)
class Spec:
    """A benchmark by name; ``run(repeats)`` measures it."""

    name: str
    run: Callable[[int], list[Measurement]]
