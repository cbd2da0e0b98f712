"""The value at an unseen site and its variance: ordinary kriging from the nearest measured sites.

Sites are points in log2 space (octaves).  With the Matern-3/2 correlation ``c(d) = (1 + sqrt(3) d) exp(-sqrt(3) d)``,
``d`` in units of ``length``, and ``N`` the nugget (repeatability of a measurement), the weights of the K nearest sites
solve::

    | C + N I   1 | | w |   | c |          value    = w . y
    | 1^T       0 | | l | = | 1 |          variance = 1 + N - w . c - l       (in units of the field's variance)

All curves of a table share one set of weights, so a whole curve costs one small solve.  Source: Rasmussen and Williams,
*Gaussian Processes for Machine Learning*, eq. 4.17 (Matern); the ordinary-kriging system is the textbook one (Cressie,
*Statistics for Spatial Data*, section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Array

Indices = NDArray[np.int64]

LENGTH_OCTAVES = 3.0
NUGGET = 0.01
NEIGHBOURS = 40


@dataclass(frozen=True, slots=True)
class Weights:
    """Which sites speak for each query, how much each counts, and the variance: [Q, K], [Q, K], [Q]."""

    sites: Indices
    weights: Array
    variance: Array
    nearest_octaves: Array


def kriging_weights(sites: Array, queries: Array, *, leave_out: Indices | None = None) -> Weights:
    """Weights of the nearest ``sites`` [S, D] for ``queries`` [Q, D].

    ``leave_out`` [Q] names for each query a site that must not speak (leave-one-out); needs at least two sites.
    """
    distance: Array = np.sqrt(((queries[:, None, :] - sites[None, :, :]) ** 2).sum(axis=2))
    if leave_out is not None:
        distance[np.arange(len(queries)), leave_out] = np.inf
    count = min(NEIGHBOURS, len(sites) - (leave_out is not None))
    chosen = np.argpartition(distance, count - 1, axis=1)[:, :count]
    near = np.take_along_axis(distance, chosen, axis=1)
    between = np.sqrt(((sites[chosen][:, :, None, :] - sites[chosen][:, None, :, :]) ** 2).sum(axis=3))
    system = np.ones((len(queries), count + 1, count + 1))
    system[:, :count, :count] = _matern(between)
    system[:, np.arange(count), np.arange(count)] += NUGGET
    system[:, count, count] = 0.0
    right = np.ones((len(queries), count + 1, 1))
    right[:, :count, 0] = _matern(near)
    solved: Array = np.linalg.solve(system, right)[:, :, 0].astype(np.float64)
    weights: Array = solved[:, :count]
    multiplier: Array = solved[:, count]
    variance: Array = 1.0 + NUGGET - (weights * right[:, :count, 0]).sum(axis=1) - multiplier
    deviation_squared: Array = np.maximum(variance, NUGGET)
    return Weights(chosen, weights, deviation_squared, near.min(axis=1))


def combine(weights: Weights, curves: Array) -> Array:
    """Curves [Q, A] that the weighted ``curves`` [S, A] of the sites add up to."""
    combined: Array = np.einsum("qk,qka->qa", weights.weights, curves[weights.sites])
    return combined


def _matern(distance_octaves: Array) -> Array:
    scaled = np.sqrt(3.0) * distance_octaves / LENGTH_OCTAVES
    correlation: Array = (1.0 + scaled) * np.exp(-scaled)
    return correlation
