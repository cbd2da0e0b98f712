"""What a back-end offers to try a small form of a plan on CPU ranks (``tiny_run.RUNNER``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.plan.plan import Plan

FP32_TOLERANCE = 1e-5
"""Largest relative difference of a loss in fp32 that counts as parity; summing in another order costs about 1e-7."""
BF16_TOLERANCE = 1e-3
"""Where a back-end computes a part in bf16, whose rounding is 4e-3; a wrong gradient costs a percent in a step."""


@dataclass(frozen=True, slots=True)
class SmallRun:
    """A small plan to train, once on its ranks and once alone."""

    plan: Plan
    folder: Path
    """Everything of the run lies below it."""
    steps: int
    deadline: float
    """On the clock of ``time.monotonic``."""
    on_ranks: Callable[[], Path]
    """Writes the launch files of the plan for torchrun; gives their folder.  Raises BackEndRefused."""
    alone: Callable[[], Path]
    """Writes those of the same model and samples on one rank, with nothing parallel.  Raises BackEndRefused."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of every step, on the ranks and in one process."""

    ranks: tuple[float, ...]
    reference: tuple[float, ...]
    notes: tuple[str, ...] = ()
    """What was done that the reader should know, for example a second launch."""
    tolerance: float = FP32_TOLERANCE


@dataclass(frozen=True, slots=True)
class Runner:
    """How one back-end trains a small form."""

    losses: Callable[[SmallRun], Losses]
    """Run the small plan and its reference.  Raises BackEndRefused."""
    requires: tuple[str, ...]
    """Python packages that must be importable here."""
    install: str
    """What installs them."""
    edits: Mapping[str, tuple[str, str]]
    """What a CPU run changes in the emitted files: name -> (emitted, here)."""
    without_context_parallelism: str = ""
    """Why cp ranks become data-parallel ones on a CPU; empty where they do not."""
