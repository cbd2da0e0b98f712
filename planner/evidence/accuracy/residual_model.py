"""The residual model: kernel ridge on the log errors that the few factors leave.

With features ``x`` of a run (degrees, sizes, shares of the step; standardised, so that each has variance 1) and
``y = ln(measured / predicted)``::

    f(x) = m + k(x) (K + r I)^-1 (y - m)        k(x, z) = exp(-|x - z|^2 / (2 w^2 D))        D features

``m`` is the median of ``y``; width ``w`` and ridge ``r`` are taken from a small grid, the strength ``a`` in 0..1 too,
by the mean absolute error of *left-out ranking groups*::

    e_G = [(C^-1)_GG]^-1 (C^-1 (y - m))_G        C = K + r I        (leave-one-group-out in closed form)

The correction ``exp(a f(x))`` is used only if the error of left-out groups falls by more than its standard error: on
the rows that calibrate, left-out groups never get worse by it.  Fewer than ``FEWEST_ROWS`` rows or ``FEWEST_GROUPS``
groups say no more than a level (``shrunken_level``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.predict.uncertainty import FRAMEWORK_SIGMA, z_of
from solver.arrays import Array

WIDTHS = (0.5, 1.0, 2.0)
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
FEWEST_ROWS, FEWEST_GROUPS = 6, 3
LEVEL_SIGMA = 0.12
"""Prior spread of the level of one back-end on one machine around the prediction."""
PRIOR_ROWS = 8.0
LARGEST_CORRECTION = 1.4
"""Of the logarithm: a factor of 4, as the factors are bounded."""


@dataclass(frozen=True, slots=True)
class ResidualModel:
    """The fitted model, with the errors of the rows that made it when their group was left out."""

    mean: Array
    scale: Array
    features: Array
    weights: Array
    middle: float
    width: float
    strength: float
    left_out: Array
    """``y`` minus its left-out correction [N]."""

    num_groups: int

    @property
    def sigma(self) -> float:
        """Spread to expect of a group that nobody has seen: of the left-out errors, wider where few groups speak.

        ``max(q80 / 1.2816, q90 / 1.6449) sqrt((G + 1) / (G - 1))``: the variance of G groups and that of a new one;
        mixed with the prior spread of a back-end, which weighs like ``PRIOR_ROWS`` rows.
        """
        middle, tail = (float(np.quantile(np.abs(self.left_out), level)) / z_of(level) for level in (0.8, 0.9))
        own = max(middle, tail) * _few(self.num_groups)
        count, prior = len(self.left_out), FRAMEWORK_SIGMA["compute"]
        return float(np.sqrt((count * own**2 + PRIOR_ROWS * prior**2) / (count + PRIOR_ROWS)))

    def log_correction(self, features: Array) -> Array:
        """What to add to the log of predictions with these features [M]."""
        kernel = _kernel((features - self.mean) / self.scale, self.features, self.width)
        found: Array = self.strength * (self.middle + kernel @ self.weights)
        return np.clip(found, -LARGEST_CORRECTION, LARGEST_CORRECTION)


def fit_residual_model(features: Array, log_errors: Array, groups: Sequence[str]) -> ResidualModel | None:
    """The model of ``ln(measured / predicted)``; None where left-out groups gain nothing from one."""
    names = list(dict.fromkeys(groups))
    if few_rows(log_errors, groups):
        return None
    members = [np.flatnonzero([group == name for group in groups]) for name in names]
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    rows = (features - mean) / scale
    best: tuple[float, ResidualModel] | None = None
    for width in WIDTHS:
        kernel = _kernel(rows, rows, width)
        for ridge in RIDGES:
            middle = float(np.median(log_errors))
            inverse: Array = np.linalg.inv(kernel + ridge * np.eye(len(rows))).astype(np.float64)
            weights = inverse @ (log_errors - middle)
            corrections = _left_out_corrections(inverse, log_errors, members)
            for strength in STRENGTHS:
                left_out = log_errors - strength * corrections
                error = float(np.abs(left_out).mean())
                if best is None or error < best[0] - 1e-12:
                    best = (
                        error,
                        ResidualModel(mean, scale, rows, weights, middle, width, strength, left_out, len(names)),
                    )
    return best[1] if best is not None and _helps(log_errors, best[1].left_out, members) else None


def few_rows(log_errors: Array, groups: Sequence[str]) -> bool:
    """Whether there are too few rows, or groups of them, for the model."""
    return len(log_errors) < FEWEST_ROWS or len(set(groups)) < FEWEST_GROUPS


def shrunken_level(log_errors: Array, row_sigma: float | None) -> float:
    """What a few rows say of the level of all: their median, shrunken towards none.

    ``median(y) n / (n + (row_sigma / LEVEL_SIGMA)^2)``, the mean of a normal level given n normal rows; ``row_sigma``:
    spread of such rows, where the back-end was studied.
    """
    count, spread = len(log_errors), FRAMEWORK_SIGMA["compute"] if row_sigma is None else row_sigma
    return float(np.median(log_errors)) * count / (count + (spread / LEVEL_SIGMA) ** 2) if count else 0.0


def _left_out_corrections(inverse: Array, log_errors: Array, members: list[NDArray[np.int64]]) -> Array:
    """What the other groups say of each row; the middle is theirs too."""
    found = np.empty(len(log_errors))
    for group in members:
        block = inverse[np.ix_(group, group)]
        # The closed form holds for any middle, so for that of the others too.
        middle = float(np.median(np.delete(log_errors, group)))
        found[group] = log_errors[group] - np.linalg.solve(block, inverse[group] @ (log_errors - middle))
    return np.clip(found, -LARGEST_CORRECTION, LARGEST_CORRECTION)


def _helps(before: Array, after: Array, members: list[NDArray[np.int64]]) -> bool:
    """Whether errors of left-out groups fall by more than chance."""
    gain = np.abs(before) - np.abs(after)
    by_group = np.array([gain[group].mean() for group in members])
    weight = np.array([len(group) for group in members]) / len(before)
    mean = float((weight * by_group).sum())
    spread = float(np.sqrt((weight**2 * (by_group - mean) ** 2).sum()))
    return mean > spread * _few(len(members)) and mean > 0.02 * float(np.abs(before).mean())


def _few(num_groups: int) -> float:
    """How much wider a spread is taken because it was seen on few groups."""
    return float(np.sqrt((num_groups + 1) / (num_groups - 1)))


def _kernel(left: Array, right: Array, width: float) -> Array:
    distance = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2.0 * left @ right.T
    found: Array = np.exp(-np.maximum(distance, 0.0) / (2.0 * width**2 * left.shape[1]))
    return found
