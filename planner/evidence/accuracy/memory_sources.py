"""Measured over predicted memory of a run of a source that nobody has seen, from the sources that were.

Runs of one source err together (one model code, one allocator setting, one meaning of the figure), so a source counts
once, however many rows it has.  With ``r`` = measured over predicted::

    ln r of a run            median m_j of its source, Student's t with four degrees of freedom, in units of s_b
    m_j of a source          normal around m_b of its back-end, standard deviation t
    m_b of a back-end        normal around m_0, standard deviation t
    ln s_b                   normal around ln s_0, standard deviation ``SCALES_DIFFER``

What is stated for a back-end is the distribution of ``r`` of a *further* source of it, given all rows: of one with rows
around what they say and as wide as sources differ; of one without, around ``m_0`` and wider.  ``m_0`` and ``s_0`` are
integrated over; ``t`` is the one that then makes the rows most likely, but integrated over as well for a back-end
without rows, whose distribution hangs on it and which few back-ends leave open.  Both levels have the same ``t``: the
rows tell the sum of the two and not the parts.  Everything stands on a grid (A. Gelman et al., Bayesian Data Analysis,
3rd edition, chapter 5: the hierarchical normal model).

*Survivors*.  A source that prints no peak and no run that died says one thing: its fullest runs did fit.  Nobody prints
the ones that did not, so ``P(r <= room)`` of each row would be too good.  The chance that a run is shown is
``P(r <= room)``, and configurations that were tried lie evenly in ``ln room`` between -0.5 and ``SHOWN`` (users double
micro-batches), which gives the density of the rooms shown.  A user may leave room besides, so that the rows bound the
median from above: medians below the best one are as likely as it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from planner.predict.memory.fit_chance import student_4_column, student_4_quantile
from solver.arrays import Array

MEDIANS: Array = np.arange(-80, 81, dtype=np.float64) * 0.005
"""Of ln r; every sum over it is an integral by the trapezoid's rule."""
SCALES: Array = np.exp(np.arange(24, dtype=np.float64) * (math.log(0.2 / 0.006) / 23) + math.log(0.006))
SHOWN = math.log(2.0)
"""Largest ln(device memory / prediction) of a run that speaks as a survivor: a doubled micro-batch fills it."""
ROOMS: Array = np.arange(121, dtype=np.float64) * ((SHOWN + 0.5) / 120) - 0.5
LEAST_CHANCE = 1e-6
"""Chance that any run has to end otherwise than predicted, so that one strange row decides nothing."""
CENTRES: Array = np.arange(-2, 7, dtype=np.float64) * 0.025
SPREADS: Array = np.arange(2, 25, dtype=np.float64) * 0.005
"""``t``."""
SCALE_CENTRES: tuple[float, ...] = (0.02, 0.03, 0.045, 0.065)
SCALES_DIFFER = 0.7
WIDE = 0.95
"""The stated median and scale are those of Student's t with the same median and this quantile."""


def likelihood(exact: Array, finished: Array, died: Array) -> Array:
    """Log likelihood of a source's rows (``ln r``; ln room of those that ran; of those that died) on the grid."""

    def below(values: Array) -> Array:
        return student_4_column((values[:, None, None] - MEDIANS[None, :, None]) / SCALES[None, None, :])

    found: Array = np.zeros((len(MEDIANS), len(SCALES)))
    if len(exact) + len(died):
        part = ((exact[:, None, None] - MEDIANS[None, :, None]) / SCALES) ** 2 / 4.0
        found += (math.log(0.375) - 2.5 * np.log1p(part) - np.log(SCALES)).sum(axis=0)
        found += np.log(LEAST_CHANCE + (1.0 - 2.0 * LEAST_CHANCE) * below(finished)).sum(axis=0)
        found += np.log(LEAST_CHANCE + (1.0 - 2.0 * LEAST_CHANCE) * (1.0 - below(died))).sum(axis=0)
        return found
    shown = finished[finished <= SHOWN]
    possible = np.trapezoid(below(ROOMS), ROOMS, axis=0)
    found += np.log(LEAST_CHANCE + below(shown)).sum(axis=0) - len(shown) * np.log(possible)
    bounded: Array = np.maximum.accumulate(found[::-1], axis=0)[::-1]
    return bounded


def further_sources(known: Mapping[str, Sequence[Array]]) -> dict[str, tuple[float, float]]:
    """``median`` and ``scale`` of ``r`` of one more source of each back-end, and (``""``) of one that is not here.

    ``known``: a back-end and the likelihoods of its sources.
    """
    names = [*known, ""]
    found = [_at_spread([known.get(name, ()) for name in names], float(spread)) for spread in SPREADS]
    evidence, weights = [each[0] for each in found], [each[1] for each in found]
    best = evidence.index(max(evidence))
    chance = np.exp(np.array(evidence) - evidence[best])
    unknown = np.tensordot(chance / chance.sum(), np.stack([each[-1] for each in weights]), 1)
    return {name: _told(weight) for name, weight in zip(names, [*weights[best][:-1], unknown], strict=True)}


def _at_spread(of_back_ends: Sequence[Sequence[Array]], spread: float) -> tuple[float, list[Array]]:
    """Log evidence of ``t``, and by back-end the weights of a further source's median and scale."""
    kernel = _normal(MEDIANS[:, None] - MEDIANS[None, :], spread)
    own = [_of_back_end(sources, kernel) for sources in of_back_ends]
    evidence, weights = [], []
    for centre, scale in itertools.product(CENTRES, SCALE_CENTRES):
        scales = _normal(np.log(SCALES) - math.log(scale), SCALES_DIFFER)
        prior = np.outer(_normal(MEDIANS - centre, spread), scales)
        joint = [prior * likely for _, likely in own]
        evidence.append(sum(most + math.log(each.sum()) for (most, _), each in zip(own, joint, strict=True)))
        weights.append([kernel.T @ (each / each.sum()) for each in joint])
    share = np.exp(np.array(evidence) - max(evidence))
    mixed = [np.tensordot(share / share.sum(), np.stack(each), 1) for each in zip(*weights, strict=True)]
    return max(evidence) + math.log(share.mean()), mixed


def _of_back_end(sources: Iterable[Array], kernel: Array) -> tuple[float, Array]:
    """Likelihood of a back-end's median and scale: each source's, its own median integrated over.  (Log factor, rest).

    The kernel's rows are back-ends' medians, its columns those of their sources.
    """
    most, likely = 0.0, np.ones((len(MEDIANS), len(SCALES)))
    for each in sources:
        highest = float(each.max())
        likely *= kernel @ np.exp(each - highest)
        factor = float(likely.max())
        likely /= factor
        most += highest + math.log(factor)
    return most, likely


def _normal(distance: Array, spread: float) -> Array:
    weight: Array = np.exp(-0.5 * (distance / spread) ** 2)
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight


def _told(weight: Array) -> tuple[float, float]:
    """Median and scale of the Student's t that a weight of medians and scales comes to."""

    def quantile(chance: float) -> float:
        low, high = -2.0, 3.0
        for _ in range(48):
            middle = 0.5 * (low + high)
            below = float((weight * student_4_column((middle - MEDIANS[:, None]) / SCALES[None, :])).sum())
            low, high = (middle, high) if below < chance else (low, middle)
        return low

    middle = quantile(0.5)
    return math.exp(middle), (quantile(WIDE) - middle) / student_4_quantile(WIDE)
