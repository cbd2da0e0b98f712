"""The time of a measured collective at any size: a monotone curve for each group shape.

A latency-bandwidth line is 10 % off (median) on real NCCL curves even where it was fitted; a table is 2 %.  Between
measured sizes the time is the mean of a straight line and a monotone cubic (PCHIP) in (size, time): the first is right
where the time is latency plus bandwidth, the second where an algorithm change bends the curve.  Times are made monotone
in size before (pool-adjacent-violators on the log), and the raw points stay in the store.  Beyond the largest size the
last slope goes on, below the smallest the first time holds, with a spread that grows by the octave.

Source: Fritsch and Carlson 1980 (slopes of the monotone cubic, harmonic-mean form of Fritsch and Butland 1984).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from profiles.arrays import Array
from profiles.prediction.curve_table import FEWEST_TO_CALIBRATE, SIGMA_EXACT, SIGMA_PER_OCTAVE, Z80
from profiles.prediction.rungs import Prediction, Rung

PRIOR_SIGMA = 0.08
BETWEEN_OVER_LEFT_OUT = 0.5
"""Error between measured sizes over the error at left-out sizes, whose gap is twice as wide.  *Fitted* on the NCCL
curves of A100 and B200 in AIConfigurator 0.12.0; judged on its other systems (``benchmarks/``)."""
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class CollectiveCurve:
    """One group shape: sizes [P] (bytes, ascending), monotone times [P], spread between points by octave gap."""

    sizes: Array
    times_s: Array
    sigma_between: float
    sigma_exact: float = SIGMA_EXACT

    def predict(self, size_bytes: Array) -> Prediction:
        """Times of collectives of these sizes."""
        sizes, times = self.sizes, self.times_s
        inside = np.clip(size_bytes, sizes[0], sizes[-1])
        time_s = between_sizes(sizes, times, inside)
        octaves = np.maximum(np.log2(size_bytes / sizes[-1]), np.log2(sizes[0] / np.maximum(size_bytes, 1.0)))
        beyond = size_bytes > sizes[-1]
        if len(sizes) > 1 and beyond.any():
            slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
            time_s = np.where(beyond, times[-1] + slope * (size_bytes - sizes[-1]), time_s)
        place = np.clip(np.searchsorted(sizes, inside), 0, len(sizes) - 1)
        hit = (sizes[place] == inside) | (sizes[np.maximum(place - 1, 0)] == inside)
        outside = octaves > 0
        sigma = np.where(hit, self.sigma_exact, self.sigma_between) + SIGMA_PER_OCTAVE * np.maximum(octaves, 0.0)
        rung = np.where(outside, Rung.BOUNDARY, np.where(hit, Rung.EXACT, Rung.BRACKET)).astype(np.int8)
        return Prediction(time_s, sigma, rung)


def collective_curves(points: Mapping[Key, tuple[Array, Array]]) -> dict[Key, CollectiveCurve]:
    """A curve for each group shape from its (sizes, times); repeated sizes count by their median.

    The spread between points is calibrated over all curves together: one curve has too few points.
    """
    reduced = {key: _medians(*each) for key, each in points.items()}
    errors = np.concatenate([np.zeros(0), *(_left_out_errors(*each) for each in reduced.values())])
    sigma = PRIOR_SIGMA
    if len(errors) >= FEWEST_TO_CALIBRATE:
        sigma = max(float(np.quantile(errors, 0.8)) / Z80 * BETWEEN_OVER_LEFT_OUT, SIGMA_EXACT)
    return {key: CollectiveCurve(sizes, monotone(times), sigma) for key, (sizes, times) in reduced.items()}


def between_sizes(sizes: Array, times: Array, wanted: Array) -> Array:
    """Mean of the straight line and the monotone cubic through the points."""
    straight: Array = np.interp(wanted, sizes, times)
    if len(sizes) < 3:
        return straight
    return 0.5 * (straight + _monotone_cubic(sizes, times, wanted))


def monotone(times_s: Array) -> Array:
    """The nearest never-falling sequence in the logs (pool adjacent violators)."""
    blocks: list[list[float]] = []
    for value in np.log(times_s):
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            last = blocks.pop()
            before = blocks[-1]
            total = before[1] + last[1]
            before[0], before[1] = (before[0] * before[1] + last[0] * last[1]) / total, total
    pooled: Array = np.exp(np.repeat([block[0] for block in blocks], [int(block[1]) for block in blocks]))
    return pooled


def _monotone_cubic(x: Array, y: Array, wanted: Array) -> Array:
    width, rise = np.diff(x), np.diff(y)
    secant = rise / width
    slope = np.zeros_like(y)
    left, right = secant[:-1], secant[1:]
    first, second = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    same_way = left * right > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        harmonic = (first + second) / (first / left + second / right)
    slope[1:-1] = np.where(same_way, harmonic, 0.0)
    slope[0], slope[-1] = secant[0], secant[-1]
    place = np.clip(np.searchsorted(x, wanted, side="right") - 1, 0, len(x) - 2)
    t = (wanted - x[place]) / width[place]
    cubic: Array = (
        y[place] * (1 + 2 * t) * (1 - t) ** 2
        + slope[place] * width[place] * t * (1 - t) ** 2
        + y[place + 1] * t**2 * (3 - 2 * t)
        + slope[place + 1] * width[place] * t**2 * (t - 1)
    )
    return cubic


def _medians(sizes: Array, times_s: Array) -> tuple[Array, Array]:
    unique, index = np.unique(sizes, return_inverse=True)
    return unique, np.array([np.median(times_s[index == place]) for place in range(len(unique))])


def _left_out_errors(sizes: Array, times_s: Array) -> Array:
    """Absolute log errors of predicting every second point from the others."""
    errors: list[Array] = []
    for start in (0, 1):
        kept = np.zeros(len(sizes), dtype=bool)
        kept[start::2] = True
        kept[[0, -1]] = True
        if not kept.all():
            expected = between_sizes(sizes[kept], monotone(times_s[kept]), sizes[~kept])
            errors.append(np.abs(np.log(expected / times_s[~kept])))
    return np.concatenate([np.zeros(0), *errors])
