"""A leaning of a plan: one number that its step time was made from, where it came from, and its weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiles.prediction.rungs import Prediction, Rung
from solver.arrays import Array

ROOFLINE_SIGMA: dict[str, float] = {"compute": 0.16, "network": 0.32}
"""Spread of a datasheet time of an operator and of a collective, taken over all of a step; with ``FRAMEWORK_SIGMA``
they make the spreads that plans without a profile carry (``planner.predict.uncertainty``)."""


@dataclass(frozen=True, slots=True)
class Leaning:
    """``seconds`` of the step come from this lookup; ``sigma`` is the spread of its log."""

    term: str
    operator: str
    part: str
    dtype: str
    shape: dict[str, int]
    rung: Rung
    sigma: float
    seconds: float


def rung_and_sigma(found: Prediction | None, kind: str) -> tuple[Rung, float]:
    """Rung and spread of one lookup; the roofline's where nothing measured speaks."""
    if found is None or int(found.rung.ravel()[0]) >= Rung.ROOFLINE:
        return Rung.ROOFLINE, ROOFLINE_SIGMA[kind]
    return Rung(int(found.rung.ravel()[0])), float(found.sigma.ravel()[0])


def whole_shape(**sizes: float | Array) -> dict[str, int]:
    """Sizes as whole numbers."""
    return {name: round(float(np.ravel(size)[0])) for name, size in sizes.items()}
