"""The chance that a plan fits: measured over predicted peak memory as a distribution, by back-end.

With ``r = measured / predicted`` and ``t = (ln r - ln median) / scale``, ``t`` has Student's distribution of four
degrees of freedom: a log-normal's core with the tails that measured runs have (a wrong rank, an unusual allocator
setting), and a distribution function and quantile in closed form (W. T. Shaw, Sampling Student's T distribution,
Journal of Computational Finance 9(4), 2006, sections 2.1 and 2.3)::

    chance(peak)   = P(r <= device memory / peak)                  (the fullest device of a plan)
    limit(chance)  = device memory / quantile of r at that chance

The two invert each other: a peak within the limit has at least that chance.  Devices of one plan err together (same
model, same allocator), so the fullest device stands for all; independent errors would give less.

``measured_ratios.json`` holds median and scale by back-end, *fitted* by ``python -m benchmarks.memory_ratios`` to the
rows of ``planner/evidence/accuracy/rows_used_for_fitting.txt``; it says how many rows of which kind each one is from.
Each is of a run of a *further* source: it is as wide as sources differ (``planner.evidence.accuracy.memory_sources``).
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.question.problem import Constraints
from profiles.document import Document

COMMITTED = Path(__file__).parent / "measured_ratios.json"
POOLED = "pooled"
MOST_TOLD = 0.999
SURELY_BYTES = 1.0
"""Smallest peak that is divided by: nothing fits surely."""


class MemoryRatio(Document):
    """Distribution of measured over predicted peak memory of one back-end, and the rows that it is from."""

    median: float = Field(gt=0)
    scale: float = Field(gt=0, description="of ln r; 95 % of runs need less than median x exp(2.132 scale)")
    exact: int = Field(ge=0, description="rows that state a peak")
    finished: int = Field(ge=0, description="rows that finished and state none: measured peak <= device memory")
    out_of_memory: int = Field(ge=0, description="rows that ran out of memory: needed peak > device memory")
    sources: int = Field(default=1, ge=1, description="publications that the rows are of")

    def chance(self, ratio: float) -> float:
        """P(measured / predicted <= ratio)."""
        if ratio <= 0:
            return 0.0
        return student_4((math.log(ratio / self.median)) / self.scale)

    def quantile(self, chance: float) -> float:
        """The ratio below which this part of the runs stays."""
        return self.median * math.exp(self.scale * student_4_quantile(chance))


class MeasuredRatios(Document):
    """What ``measured_ratios.json`` holds."""

    schema_version: int = 1
    said: str
    ratios: dict[str, MemoryRatio]
    same_as: dict[str, str] = Field(description="back-end -> the one whose memory model and allocator it shares")


def student_4(t: float) -> float:
    """Distribution function of Student's t with four degrees of freedom (Shaw 2006, section 2.1)."""
    part = t * t / 4.0
    return 0.5 + 0.375 * t / math.sqrt(1.0 + part) * (1.0 - part / (1.0 + part) / 3.0)


def student_4_column(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """``student_4`` of many, to the same bits."""
    part = t * t / 4.0
    column: NDArray[np.float64] = 0.5 + 0.375 * t / np.sqrt(1.0 + part) * (1.0 - part / (1.0 + part) / 3.0)
    return column


def student_4_quantile(chance: float) -> float:
    """Its inverse (Shaw 2006, section 2.3).  Raises ValueError outside of ``0 < chance < 1``."""
    if not 0 < chance < 1:
        raise ValueError(f"no quantile at {chance}")
    root = math.sqrt(4.0 * chance * (1.0 - chance))
    size = 2.0 * math.sqrt(max(math.cos(math.acos(min(root, 1.0)) / 3.0) / root - 1.0, 0.0))
    return math.copysign(size, chance - 0.5)


@cache
def measured_ratios() -> MeasuredRatios:
    """The committed distributions."""
    return MeasuredRatios.model_validate_json(COMMITTED.read_text(encoding="utf-8"))


def ratio_name(backend: str) -> str:
    """Whose rows speak for a back-end (``NAME`` or ``NAME==RELEASE``): its own, a relative's, or all together."""
    known = measured_ratios()
    name = backend.partition("==")[0]
    name = known.same_as.get(name, name)
    return name if name in known.ratios else POOLED


def memory_ratio(backend: str) -> MemoryRatio:
    """The distribution for a back-end."""
    return measured_ratios().ratios[ratio_name(backend)]


def fits_probability(memory_bytes: float, peak_bytes: float, backend: str) -> float:
    """The chance that a device of this memory holds a predicted peak."""
    return memory_ratio(backend).chance(memory_bytes / max(peak_bytes, SURELY_BYTES))


def chance_words(chance: float) -> str:
    """``97.3 %``; never rounded up to certainty."""
    return "over 99.9 %" if chance > MOST_TOLD else f"{100 * chance:.1f} %"


def usable_bytes(memory_bytes: float, constraints: Constraints, backend: str) -> float:
    """Predicted peak that is allowed on a device: what has the wanted chance to fit, and leaves the given margin."""
    limit = memory_bytes
    if constraints.fits is not None:
        limit = memory_bytes / max(1.0, memory_ratio(backend).quantile(constraints.fits))
    if constraints.memory_margin_fraction is not None:
        limit = min(limit, memory_bytes * (1.0 - constraints.memory_margin_fraction))
    return limit
