"""A curve table from scattered measurements: grid them, fill the holes, calibrate the spread.

Points: sites [P, D], axis [P], roofline seconds [P], measured seconds [P].  Equal shapes must be reduced to one time
before (``profiles.prediction.environment_choice`` picks the environment; repeats in it are summarised by the median).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Array
from profiles.prediction.curve_table import (
    FEWEST_TO_CALIBRATE,
    PRIOR_SIGMA_BRACKET,
    PRIOR_SIGMA_SITE,
    SIGMA_EXACT,
    Z80,
    CurveTable,
)
from profiles.prediction.kriging import combine, kriging_weights

SMALLEST_GAP_OCTAVES = 0.25


@dataclass(frozen=True, slots=True)
class LeftOutCurves:
    """What is said about every site without it: kriged ``log util`` [S, A] and the kriging deviation [S].

    ``nearest_octaves`` [S]: how far the next site is (0 where there is no other).  ``own_part``: how much of the
    distance from the kriged curve one point of a curve tells about the next one, 0 to 1.
    """

    kriged: Array
    deviation: Array
    nearest_octaves: Array
    own_part: float


def build_curves(
    sites: Array, axis: Array, roofline_s: Array, time_s: Array, *, sigma_exact: float = SIGMA_EXACT
) -> CurveTable:
    """The table of all points; needs at least one."""
    grid_sites, row = np.unique(sites, axis=0, return_inverse=True)
    grid_axis, column = np.unique(axis, return_inverse=True)
    log_util = _grid(
        row.reshape(-1), column.reshape(-1), np.log(roofline_s / time_s), (len(grid_sites), len(grid_axis))
    )
    measured = ~np.isnan(log_util)
    log_axis = np.log2(grid_axis)
    left_out = left_out_curves(grid_sites, grid_axis, log_util)
    kriged, part = left_out.kriged, left_out.own_part
    filled = log_util if measured.all() else _filled(log_axis, log_util, kriged, part)
    return CurveTable(
        sites=grid_sites,
        axis=grid_axis,
        log_util=filled,
        measured=measured,
        sigma_exact=sigma_exact,
        sigma_site=_site_sigma(log_util, kriged, left_out.deviation, sigma_exact),
        sigma_bracket=_bracket_sigma(log_axis, log_util, sigma_exact),
        sigma_hole=_hole_sigma(log_axis, log_util - kriged, part, sigma_exact),
    )


def left_out_curves(sites: Array, axis: Array, log_util: Array) -> LeftOutCurves:
    """Every site as all the others see it: sites [S, D], axis [A], ``log_util`` [S, A] with NaN where not measured."""
    log_axis = np.log2(axis)
    rough = np.stack([_interpolated(log_axis, curve) for curve in log_util])
    kriged, deviation, nearest = _left_out(np.log2(sites), rough)
    return LeftOutCurves(kriged, deviation, nearest, _own_part(log_axis, log_util - kriged))


def _grid(row: NDArray[np.int64], column: NDArray[np.int64], value: Array, shape: tuple[int, int]) -> Array:
    """Median of the values that fall on each cell; NaN where there is none."""
    cell = row * shape[1] + column
    order = np.lexsort((value, cell))
    cell, value = cell[order], value[order]
    starts = np.flatnonzero(np.r_[True, cell[1:] != cell[:-1]])
    counts = np.diff(np.r_[starts, len(cell)])
    middle = 0.5 * (value[starts + (counts - 1) // 2] + value[starts + counts // 2])
    grid = np.full(shape[0] * shape[1], np.nan)
    grid[cell[starts]] = middle
    return grid.reshape(shape)


def _interpolated(log_axis: Array, curve: Array) -> Array:
    known = ~np.isnan(curve)
    return np.interp(log_axis, log_axis[known], curve[known])


def _left_out(log_sites: Array, rough: Array) -> tuple[Array, Array, Array]:
    """Each site's curve, deviation and next site as all others see it; its own curve where it is alone."""
    count = len(log_sites)
    if count < 2:
        return rough, np.ones(count), np.zeros(count)
    curves, deviation, nearest = np.empty_like(rough), np.empty(count), np.empty(count)
    for start in range(0, count, 256):
        index = np.arange(start, min(start + 256, count))
        weights = kriging_weights(log_sites, log_sites[index], leave_out=index)
        curves[index], deviation[index] = combine(weights, rough), np.sqrt(weights.variance)
        nearest[index] = weights.nearest_octaves
    return curves, deviation, nearest


def _filled(log_axis: Array, log_util: Array, kriged: Array, part: float) -> Array:
    """Holes take the shape of the kriged curve, moved by ``part`` to the level of the site's own points next to it."""
    filled = log_util.copy()
    for curve, shape in zip(filled, kriged, strict=True):
        hole = np.isnan(curve)
        if hole.any():
            own = _interpolated(log_axis, np.where(hole, np.nan, curve - shape))
            curve[hole] = shape[hole] + part * own[hole]
    return filled


def _between_neighbours(log_axis: Array, values: Array) -> Array:
    """What the two neighbours on the axis say about each inner point: [S, A - 2]."""
    part = (log_axis[1:-1] - log_axis[:-2]) / (log_axis[2:] - log_axis[:-2])
    between: Array = values[:, :-2] * (1 - part) + values[:, 2:] * part
    return between


def _own_part(log_axis: Array, residual: Array) -> float:
    """How much of a residual the two neighbours on the own curve predict: the regression slope, 0 to 1."""
    if residual.shape[1] < 3:
        return 1.0
    expected = _between_neighbours(log_axis, residual)
    both = ~np.isnan(expected) & ~np.isnan(residual[:, 1:-1])
    x, y = expected[both], residual[:, 1:-1][both]
    if len(x) < FEWEST_TO_CALIBRATE or not (x @ x) > 0:
        return 1.0
    return float(np.clip((x @ y) / (x @ x), 0.0, 1.0))


def _calibrated(errors: Array, prior: float, sigma_exact: float) -> float:
    """Sigma that makes an 80 % interval hold these absolute log errors, without the repeatability (added later)."""
    known = errors[~np.isnan(errors)]
    if len(known) < FEWEST_TO_CALIBRATE:
        return prior
    spread = float(np.quantile(known, 0.8)) / Z80
    return float(np.sqrt(max(spread**2 - sigma_exact**2, (0.1 * spread) ** 2)))


def _hole_sigma(log_axis: Array, residual: Array, part: float, sigma_exact: float) -> Array:
    """Spread of a filled hole at each axis point; the ends take their neighbour's."""
    if residual.shape[1] < 3:
        return np.full(residual.shape[1], PRIOR_SIGMA_BRACKET)
    errors = np.abs(residual[:, 1:-1] - part * _between_neighbours(log_axis, residual))
    inner = [_calibrated(column, PRIOR_SIGMA_BRACKET, sigma_exact) for column in errors.T]
    return np.array([inner[0], *inner, inner[-1]])


def _site_sigma(log_util: Array, kriged: Array, deviation: Array, sigma_exact: float) -> Array:
    """Spread of a kriged curve at each axis point, in units of the kriging deviation."""
    typical = float(np.median(deviation))
    scaled = np.abs(log_util - kriged) / deviation[:, None] * typical
    return np.array([_calibrated(column, PRIOR_SIGMA_SITE, sigma_exact) / typical for column in scaled.T])


def _bracket_sigma(log_axis: Array, log_util: Array, sigma_exact: float) -> Array:
    """Spread inside each interval of the axis, from predicting every inner point by its neighbours.

    A left-out point sits in twice the interval; mostly noise, its error grows with the square root of the width.
    """
    count = len(log_axis)
    if count < 3:
        return np.full(max(count - 1, 1), PRIOR_SIGMA_BRACKET)
    gap = np.maximum(log_axis[2:] - log_axis[:-2], SMALLEST_GAP_OCTAVES)
    errors = np.abs(log_util[:, 1:-1] - _between_neighbours(log_axis, log_util))
    inner = np.array([_calibrated(column, PRIOR_SIGMA_BRACKET, sigma_exact) for column in errors.T]) / np.sqrt(gap)
    width = np.sqrt(np.maximum(np.diff(log_axis), SMALLEST_GAP_OCTAVES))
    sigma: Array = np.maximum(np.r_[inner[0], inner], np.r_[inner, inner[-1]]) * width
    return sigma
