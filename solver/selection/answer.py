"""What is known when a solve ends: the best selection, and how good any selection could be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["optimal", "feasible", "infeasible", "unknown"]
"""optimal: cost = bound; feasible: a selection and a bound below it; infeasible: proved that there is none;
unknown: the limit came before the first selection."""


@dataclass(frozen=True, slots=True)
class TracePoint:
    """What was known at a moment of the solve."""

    wall_s: float
    cost: int | None
    bound: int | None
    by: str


@dataclass(frozen=True, slots=True)
class BindingWindow:
    """Why there is no selection: from ``begin`` until before ``end`` it needs ``least_usage`` > ``capacity``."""

    begin: int
    end: int
    least_usage: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a solve.  ``bound`` <= cost of every selection; ``gap`` = (cost - bound) / max(|cost|, 1)."""

    status: Status
    cost: int | None
    choice: tuple[int, ...] | None
    bound: int | None
    gap: float | None
    wall_s: float
    trace: tuple[TracePoint, ...]
    binding_window: BindingWindow | None = None
    forbidden_nodes: tuple[int, ...] = ()
    """With status infeasible, nodes whose options all contradict each other, where it is that and not memory."""
