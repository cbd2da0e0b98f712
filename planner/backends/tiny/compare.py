"""Do the ranks train what one process trains?  Losses step by step, and the largest relative difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

TOLERANCE = 1e-5
"""Largest relative difference of a loss in fp32 that counts as parity; summing in another order costs about 1e-7."""


@dataclass(frozen=True, slots=True)
class StepLosses:
    """One step, on the ranks and in one process."""

    loss: float
    reference_loss: float

    @property
    def relative_difference(self) -> float:
        """|loss - reference| / |reference|; infinite when either is no number."""
        if not (isfinite(self.loss) and isfinite(self.reference_loss)):
            return inf
        if self.loss == self.reference_loss:
            return 0.0
        return abs(self.loss - self.reference_loss) / abs(self.reference_loss) if self.reference_loss else inf


def compared(losses: Sequence[float], references: Sequence[float]) -> tuple[StepLosses, ...]:
    """Pair the steps.  Raises ValueError when there are not equally many."""
    return tuple(StepLosses(*pair) for pair in zip(losses, references, strict=True))


def worst(steps: Sequence[StepLosses]) -> float:
    """The largest relative difference of all steps."""
    return max(step.relative_difference for step in steps)
