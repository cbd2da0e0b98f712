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
    times = dict(zip(_keys(chosen), chosen.time_s.tolist(), strict=True))
    # Another family of kernels is another operator, not a repetition.
    others = [each for each in candidates if each is not chosen and _trains(each) == _trains(chosen)]
    pairs = [
        (time, times[key])
        for other in others
        for key, time in zip(_keys(other), other.time_s.tolist(), strict=True)
        if key in times
    ]
    if len(pairs) < 12:
        return default
    theirs, mine = np.array(pairs).T
    errors = np.abs(np.log(theirs / mine))
    spread = float(np.quantile(errors, 0.8)) / _Z80 / np.sqrt(2.0)
    return float(np.clip(spread, SMALLEST_SIGMA, LARGEST_SIGMA))


def _keys(points: CandidatePoints) -> list[bytes]:
    """Each shape as one word."""
    shapes = np.ascontiguousarray(points.shapes)
    words: list[bytes] = shapes.view(f"V{shapes.strides[0]}").reshape(-1).tolist()
    return words


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
