"""The ladder from a direct hit to a refusal, and what a prediction carries.

Each rung is less certain than the one before; ``sigma`` (standard deviation of the log of the time) says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Array


class Rung(IntEnum):
    """The rungs, best first."""

    EXACT = 0
    BRACKET = 1
    NEAREST = 2
    BOUNDARY = 3
    TRANSFER = 4
    ROOFLINE = 5
    MISSING = 6


PROVENANCE_OF_RUNG: dict[Rung, str] = {
    Rung.EXACT: "measured",
    Rung.BRACKET: "interpolated",
    Rung.NEAREST: "interpolated",
    Rung.BOUNDARY: "extrapolated",
    Rung.TRANSFER: "transferred",
    Rung.ROOFLINE: "datasheet",
    Rung.MISSING: "missing",
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """Times with their spread and rung: three arrays of one shape.  MISSING entries are NaN."""

    time_s: Array
    sigma: Array
    rung: NDArray[np.int8]
