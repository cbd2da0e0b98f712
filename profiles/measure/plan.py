"""The plan of a measurement: what, for how long, and with which care; plain data, from a command line or test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.measure.case import WantedShape
from profiles.measure.grid import GridName
from profiles.measure.protocol import Protocol

DEFAULT_BUDGET_S = 600.0
DTYPES = ("bf16", "fp16", "fp32", "fp8")


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """One run on one device.

    ``shapes``: what a model runs (measured before the grid).  ``only``: kinds of ``operators.KINDS``, empty = all.
    ``time_budget_s``: nothing new begins after it; what is left out is counted.  ``flush_bytes``: None = twice the
    last-level cache.
    """

    shapes: tuple[WantedShape, ...] = ()
    grid: GridName = "full"
    only: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("bf16",)
    backend: str = "auto"
    time_budget_s: float = DEFAULT_BUDGET_S
    flush_bytes: int | None = None
    block_size: int = 16
    memory_part: float = 0.5
    """Part of the free memory that one block of cases may take."""
    protocol: Protocol = field(default_factory=Protocol)
    tool_version: str = ""

    def __post_init__(self) -> None:
        """Raises DocumentInvalid for unknown dtypes and an impossible budget."""
        check_dtypes(self.dtypes)
        if not (math.isfinite(self.time_budget_s) and self.time_budget_s > 0):
            raise DocumentInvalid(
                f"{self.time_budget_s} s is no time to measure in", where="--time-budget", hint="give seconds above 0"
            )


def check_dtypes(dtypes: tuple[str, ...]) -> None:
    """Raises DocumentInvalid for a dtype that is not measured, or none at all."""
    for dtype in dtypes or ("",):
        if dtype not in DTYPES:
            raise DocumentInvalid(f"'{dtype}' is not measured", where="--dtype", hint=f"known: {', '.join(DTYPES)}")
