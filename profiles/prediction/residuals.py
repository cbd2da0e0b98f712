"""Leave-one-out residuals of a table, two kinds: its errors where its own measurements are kept from it.

    site left out    the whole curve of a site is taken away: what is said about an unseen site
    point left out   one point is taken away, the rest of its curve stays: what is said between measured sizes

Both use what the build itself uses (``build_curves.left_out_curves``); the spreads are the table's own.  Since the
build fits the spreads to such residuals, the part inside the 80 % interval is near 80 % over a whole table; how it is
spread over sites and sizes is what residuals tell.  Predictions of really unseen data: ``benchmarks/held_out.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Array
from profiles.prediction.build_curves import SMALLEST_GAP_OCTAVES, LeftOutCurves, left_out_curves
from profiles.prediction.curve_kinds import kind_of
from profiles.prediction.curve_table import REACH_OCTAVES, Z80, CurveTable
from profiles.prediction.profile import OperatorTable

Keys = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ResidualSummary:
    """Absolute errors as fractions of the measured time, and the part of points inside their 80 % interval."""

    num_points: int
    median: float
    p90: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Residuals:
    """Measured points and what is said without them: all [P]; ``row`` and ``column`` point into sites and axis."""

    row: Keys
    column: Keys
    measured_s: Array
    predicted_s: Array
    sigma: Array

    @property
    def log_error(self) -> Array:
        """Log of predicted over measured: positive = predicted too slow."""
        error: Array = np.log(self.predicted_s / self.measured_s)
        return error

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether the measured time lies in the stated 80 % interval."""
        held: NDArray[np.bool_] = np.abs(self.log_error) <= Z80 * self.sigma
        return held

    def summary(self) -> ResidualSummary | None:
        """Median, 90th percentile and coverage; None without points."""
        if not len(self.row):
            return None
        errors = np.abs(np.expm1(self.log_error))
        return ResidualSummary(
            num_points=len(errors),
            median=float(np.median(errors)),
            p90=float(np.quantile(errors, 0.9)),
            coverage=float(self.inside.mean()),
        )


def table_roofline_s(table: OperatorTable) -> Array:
    """Roofline seconds of every size on the grid of a table: [S, A]."""
    sites, axis = table.curves.sites, table.curves.axis
    kind = kind_of(table.origin.operator)
    if kind is None:
        return np.broadcast_to(table.roofline.moved_s(axis), (len(sites), len(axis)))
    size: dict[str, Array] = {kind.axis: axis[None, :]}
    for name, column in zip(kind.sites, sites.T, strict=True):
        size[name] = column[:, None]
    if kind.variant == "head_dim":
        size[kind.variant] = np.array(float(table.origin.variant))
    return kind.roofline_s(table.roofline, size)


def left_out_of(table: OperatorTable) -> LeftOutCurves:
    """Every site of a table as the others see it: what both kinds of residuals begin with."""
    curves = table.curves
    return left_out_curves(curves.sites, curves.axis, _measured(curves))


def site_residuals(table: OperatorTable, left_out: LeftOutCurves | None = None) -> Residuals:
    """Every measured point as the other sites predict it; empty where there is one site only or none near.

    ``left_out`` of the table saves its computation where it is at hand.
    """
    curves = table.curves
    left_out = left_out or left_out_of(table)
    told = curves.measured & (left_out.nearest_octaves <= REACH_OCTAVES)[:, None] & (len(curves.sites) > 1)
    sigma = np.hypot(curves.sigma_site * left_out.deviation[:, None], curves.sigma_exact)
    return _residuals(table, told, left_out.kriged, sigma)


def point_residuals(table: OperatorTable, left_out: LeftOutCurves | None = None) -> Residuals:
    """Every measured point as the rest of its curve, and the other sites at its size, predict it.

    A size that no other site was measured at is predicted from its two neighbours; at the ends of the axis it has
    only one and is left out.
    """
    curves = table.curves
    log_axis, measured = np.log2(curves.axis), curves.measured
    log_util = _measured(curves)
    left_out = left_out or left_out_of(table)
    left, right = _neighbours(measured)
    some, both = (left >= 0) | (right >= 0), (left >= 0) & (right >= 0)
    # At the ends of a curve its one neighbour speaks for both sides.
    left, right = np.where(left < 0, right, left).clip(min=0), np.where(right < 0, left, right).clip(min=0)
    width = log_axis[right] - log_axis[left]
    part = np.divide(log_axis[None, :] - log_axis[left], width, out=np.zeros_like(width), where=width > 0)
    shared = (measured.sum(axis=0) > 1)[None, :]
    distance = _between(log_util - left_out.kriged, left, right, part)
    straight = _between(log_util, left, right, part)
    predicted = np.where(shared, left_out.kriged + left_out.own_part * distance, straight)
    sigma = np.where(shared, curves.sigma_hole[None, :], _bracket_rate(curves) * _root(width))
    return _residuals(table, measured & np.where(shared, some, both), predicted, np.hypot(sigma, curves.sigma_exact))


def _measured(curves: CurveTable) -> Array:
    return np.where(curves.measured, curves.log_util, np.nan)


def _residuals(table: OperatorTable, told: NDArray[np.bool_], log_util: Array, sigma: Array) -> Residuals:
    row, column = np.nonzero(told)
    roofline_s = table_roofline_s(table)[row, column]
    return Residuals(
        row=row,
        column=column,
        measured_s=roofline_s / np.exp(table.curves.log_util[row, column]),
        predicted_s=roofline_s / np.exp(log_util[row, column]),
        sigma=sigma[row, column],
    )


def _neighbours(measured: NDArray[np.bool_]) -> tuple[Keys, Keys]:
    """Columns of the last measured point before and the first after each cell of a row; -1 where there is none."""
    count = measured.shape[1]
    place = np.broadcast_to(np.arange(count), measured.shape)
    before = np.full(measured.shape, -1, dtype=np.int64)
    before[:, 1:] = np.maximum.accumulate(np.where(measured, place, -1), axis=1)[:, :-1]
    after = np.full(measured.shape, count, dtype=np.int64)
    after[:, :-1] = np.minimum.accumulate(np.where(measured, place, count)[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return before, np.where(after == count, -1, after)


def _between(values: Array, left: Keys, right: Keys, part: Array) -> Array:
    below = np.take_along_axis(values, left, axis=1)
    between: Array = below + (np.take_along_axis(values, right, axis=1) - below) * part
    return between


def _bracket_rate(curves: CurveTable) -> Array:
    """Spread between points a root octave, at each axis point the larger of its two intervals: [1, A]."""
    count = len(curves.axis)
    if count < 2:
        return np.full((1, count), curves.sigma_bracket[0])
    rate = curves.sigma_bracket / _root(np.diff(np.log2(curves.axis)))
    larger: Array = np.maximum(np.r_[rate[0], rate], np.r_[rate, rate[-1]])
    return larger[None, :]


def _root(octaves: Array) -> Array:
    root: Array = np.sqrt(np.maximum(octaves, SMALLEST_GAP_OCTAVES))
    return root
