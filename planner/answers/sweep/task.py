"""Tasks to a worker and outcomes back: text and numbers, nothing that two processes could see differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OutcomeKind = Literal["planned", "infeasible", "undecided", "refused", "failed"]
"""planned     a plan, proved or as good as the time limit allowed
infeasible  proved that nothing fits
undecided   the time limit ended before a plan was found
refused     the question cannot be asked (a precision that the device does not have)
failed      a mistake of ours, or a worker that died again and again"""

MOST_TRIES = 3
"""Runs of a task whose worker died under it, before the cell is given up."""


@dataclass(frozen=True, slots=True)
class Task:
    """One problem to search; ``key`` is its id."""

    key: str
    problem: str
    """Canonical JSON."""
    top_k: int = 0
    time_limit_s: float | None = None
    seed: int = 0
    profile_id: str | None = None
    """The measurements that the problem leans on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task; a plan is its canonical JSON."""

    key: str
    kind: OutcomeKind
    plan: str | None = None
    wall_s: float = 0.0
    what: str = ""
    where: str | None = None
    hint: str | None = None
    binding: str | None = None
    relaxations: tuple[str, ...] = ()
    worker: str = ""
    """Who computed it: a process or a node; empty = the driver itself."""
