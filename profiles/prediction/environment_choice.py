"""The environment that is used for an operator, and how far the others disagree.

Two framework versions on one device differ by 2 to 5 % (median).  They are never averaged: the one nearest to training
speaks, and the disagreement of the others at the same shapes becomes the spread of a direct hit.

Order: measured here before imported; kernels that training frameworks call (torch's own matmul, flash attention)
before others; more shapes before fewer; the newer version; the batch id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from profiles.arrays import Array

SMALLEST_SIGMA = 0.02
LARGEST_SIGMA = 0.15
_Z80 = 1.2816
_TRAINING_KERNELS: dict[str, re.Pattern[str]] = {
    "matmul": re.compile(r"torch|cublas|transformer.?engine|aten", re.IGNORECASE),
    "attention": re.compile(r"flash.?attn|cudnn|scaled_dot_product|aten", re.IGNORECASE),
}
_ANY = re.compile("")


@dataclass(frozen=True, slots=True)
class CandidatePoints:
    """Points of one environment and kernel: shapes [P, D] (integers), roofline and time [P]."""

    operator: str
    batch_id: str
    kind: str
    format: str
    environment: str
    version: str
    kernel: str
    shapes: Array
    time_s: Array


def choose(candidates: list[CandidatePoints]) -> CandidatePoints:
    """The candidate that speaks; at least one is given."""
    return max(candidates, key=_rank)


def repeatability(chosen: CandidatePoints, candidates: list[CandidatePoints], default: float) -> float:
    """Sigma of a direct hit: how far other environments are from the chosen one at equal shapes.

    The difference of two has twice the variance of one.  ``default`` where no other measured the same shapes.
    """
    times = {tuple(shape): time for shape, time in zip(chosen.shapes.tolist(), chosen.time_s.tolist(), strict=True)}
    errors: list[float] = []
    for other in candidates:
        # Another family of kernels is another operator, not a repetition.
        if other is chosen or _trains(other) != _trains(chosen):
            continue
        for shape, time in zip(other.shapes.tolist(), other.time_s.tolist(), strict=True):
            mine = times.get(tuple(shape))
            if mine is not None:
                errors.append(abs(float(np.log(time / mine))))
    if len(errors) < 12:
        return default
    spread = float(np.quantile(errors, 0.8)) / _Z80 / np.sqrt(2.0)
    return float(np.clip(spread, SMALLEST_SIGMA, LARGEST_SIGMA))


def _rank(candidate: CandidatePoints) -> tuple[bool, bool, int, tuple[int, ...], str]:
    numbers = tuple(int(part) for part in re.findall(r"\d+", candidate.version))
    return (
        candidate.kind == "measured",
        _trains(candidate),
        len(candidate.time_s),
        numbers,
        candidate.batch_id,
    )


def _trains(candidate: CandidatePoints) -> bool:
    """Whether a training framework would run this kernel."""
    return bool(_TRAINING_KERNELS.get(candidate.operator, _ANY).search(candidate.kernel))
