"""The efficiency of an operator at any shape, from measured curves at some sites.

A *site* is what one curve shares (a matmul's n and k; an attention's batch and heads); the *axis* is the size that the
curve runs over (m; the sequence).  Stored is ``log util = log(roofline / time)``: smooth where the time is not.

    on the curve           linear in log2(axis) between measured points
    unseen site            kriging of whole curves from the nearest sites (``profiles.prediction.kriging``)
    hole in a curve        the kriged curve's shape, moved to the site's own level: both neighbours speak
    outside                the boundary's utilisation holds, the spread grows by ``SIGMA_PER_OCTAVE``

Spread: every rung is calibrated when the table is built, by leaving measured points out: the 80 % quantile of the
absolute log error over 1.2816 is the sigma that makes an 80 % interval hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Array
from profiles.prediction.kriging import combine, kriging_weights
from profiles.prediction.rungs import Rung

Keys = NDArray[np.int64]

Z80 = 1.2816
REACH_OCTAVES = 3.0
"""Farther than this from every measured site nothing is said: the next rung answers."""
SIGMA_PER_OCTAVE = 0.04
SIGMA_EXACT = 0.03
"""Repeatability where nothing better is known: two framework versions on one device differ by 2-5 % (median)."""
PRIOR_SIGMA_SITE = 0.10
PRIOR_SIGMA_BRACKET = 0.06
FEWEST_TO_CALIBRATE = 12
_COORDINATE_BITS = 21


@dataclass(slots=True)
class CurveTable:
    """Measured curves: sites [S, D] (sizes, not logs), axis [A] (sizes), log_util [S, A] without holes.

    ``measured`` [S, A] marks what was really measured.  ``sigma_site`` [A] is the spread of a kriged curve in units of
    the kriging deviation; ``sigma_bracket`` [A - 1] the spread inside each interval of the axis; ``sigma_hole`` [A]
    that of a filled hole.
    """

    sites: Array
    axis: Array
    log_util: Array
    measured: NDArray[np.bool_]
    sigma_exact: float
    sigma_site: Array
    sigma_bracket: Array
    sigma_hole: Array
    _cache: _SeenSites | None = field(default=None, repr=False)

    def predict(self, axis: Array, sites: Array) -> tuple[Array, Array, NDArray[np.int8]]:
        """``log util``, its sigma and rung for queries: axis [Q], sites [Q, D] (all positive)."""
        seen, row = self._seen(sites)
        position = np.clip(axis, self.axis[0], self.axis[-1])
        right = np.clip(np.searchsorted(self.axis, position), 1, max(len(self.axis) - 1, 1))
        if len(self.axis) == 1:
            left = right = np.zeros(len(axis), dtype=np.int64)
            part = np.zeros(len(axis))
        else:
            left = right - 1
            log_axis = np.log2(self.axis)
            part = (np.log2(position) - log_axis[left]) / (log_axis[right] - log_axis[left])
        below, above = seen.log_util[row, left], seen.log_util[row, right]
        value = below + (above - below) * part
        return value, *self._spread(seen, row, axis, left, right, part)

    def _spread(
        self, seen: _SeenSites, row: Keys, axis: Array, left: Keys, right: Keys, part: Array
    ) -> tuple[Array, NDArray[np.int8]]:
        column = np.where(part > 0.5, right, left)
        on_axis = (part == 0.0) | (part == 1.0)
        hit = on_axis & seen.measured[row, np.where(part == 1.0, right, left)]
        between = self.sigma_bracket[np.minimum(left, len(self.sigma_bracket) - 1)]
        bracket = np.where(on_axis, np.where(seen.own[row], self.sigma_hole[column], 0.0), between)
        site = self.sigma_site[column] * seen.deviation[row]
        octaves = np.maximum(np.log2(self.axis[0] / axis), np.log2(axis / self.axis[-1])).clip(min=0.0)
        outside = octaves + seen.outside[row]
        sigma = np.sqrt(bracket**2 + site**2 + self.sigma_exact**2) + SIGMA_PER_OCTAVE * outside
        sigma = np.where(hit & (outside == 0), self.sigma_exact, sigma)
        rung = np.where(seen.own[row], np.int8(Rung.BRACKET), np.int8(Rung.NEAREST))
        rung = np.where(outside > 0, np.int8(Rung.BOUNDARY), np.where(hit, np.int8(Rung.EXACT), rung))
        return sigma, np.where(seen.reached[row], rung, np.int8(Rung.MISSING)).astype(np.int8)

    def _seen(self, sites: Array) -> tuple[_SeenSites, Keys]:
        """Curves of every site asked for so far, and the row of each query; new sites are kriged once."""
        cache = self._cache or _own_sites(self)
        wanted = _site_keys(sites)
        row = np.minimum(np.searchsorted(cache.keys, wanted), len(cache.keys) - 1)
        unknown = cache.keys[row] != wanted
        if unknown.any():
            _, first = np.unique(wanted[unknown], return_index=True)
            cache = _joined(cache, _kriged_sites(self, sites[unknown][first]))
            row = np.searchsorted(cache.keys, wanted)
        self._cache = cache
        return cache, row


@dataclass(frozen=True, slots=True)
class _SeenSites:
    """Curves by site key (sorted): kriging deviation, octaves outside the measured box, own or kriged, in reach."""

    keys: Keys
    log_util: Array
    measured: NDArray[np.bool_]
    deviation: Array
    outside: Array
    own: NDArray[np.bool_]
    reached: NDArray[np.bool_]


def _site_keys(sites: Array) -> Keys:
    """One integer a site; sizes up to 2^21 (three coordinates) or 2^31 (two)."""
    bits = 31 if sites.shape[1] <= 2 else _COORDINATE_BITS
    whole = np.minimum(np.rint(sites), 2.0**bits - 1).astype(np.int64)
    key = np.zeros(len(sites), dtype=np.int64)
    for column in range(sites.shape[1]):
        key = (key << bits) | whole[:, column]
    return key


def _own_sites(table: CurveTable) -> _SeenSites:
    keys = _site_keys(table.sites)
    order = np.argsort(keys)
    count = len(keys)
    return _SeenSites(
        keys[order],
        table.log_util[order],
        table.measured[order],
        np.zeros(count),
        np.zeros(count),
        np.ones(count, dtype=bool),
        np.ones(count, dtype=bool),
    )


def _kriged_sites(table: CurveTable, sites: Array) -> _SeenSites:
    """Curves for sites that were not measured; beyond the box of measured sites the border speaks."""
    measured, wanted = np.log2(table.sites), np.log2(np.maximum(sites, 1.0))
    held = np.clip(wanted, measured.min(axis=0), measured.max(axis=0))
    outside = np.sqrt(((wanted - held) ** 2).sum(axis=1))
    count = len(sites)
    curves, deviation, nearest = np.empty((count, len(table.axis))), np.empty(count), np.empty(count)
    for start in range(0, count, 256):
        part = slice(start, start + 256)
        weights = kriging_weights(measured, held[part])
        curves[part] = combine(weights, table.log_util)
        deviation[part], nearest[part] = np.sqrt(weights.variance), weights.nearest_octaves
    order = np.argsort(_site_keys(sites))
    return _SeenSites(
        _site_keys(sites)[order],
        curves[order],
        np.zeros((count, len(table.axis)), dtype=bool),
        deviation[order],
        outside[order],
        np.zeros(count, dtype=bool),
        (nearest + outside <= REACH_OCTAVES)[order],
    )


def _joined(first: _SeenSites, second: _SeenSites) -> _SeenSites:
    keys = np.concatenate([first.keys, second.keys])
    order = np.argsort(keys)
    parts = [
        np.concatenate([getattr(first, name), getattr(second, name)])[order]
        for name in ("log_util", "measured", "deviation", "outside", "own", "reached")
    ]
    return _SeenSites(keys[order], *parts)
