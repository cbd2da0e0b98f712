"""Efficiencies of a kernel on a grid of sizes, and what they are between the measured sizes.

What is kept is ``log(measured seconds / roofline seconds)``.  Between measured sizes it is interpolated linearly over
the logarithms of the sizes; outside it keeps the value of the nearest measured size, so that times go on as the
roofline goes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from profiles.arrays import Array


@dataclass(slots=True)
class Grid:
    """One kernel of fixed shape over one to three sizes."""

    axes: tuple[Array, ...]
    """Logarithms of the sizes, rising."""
    values: Array
    _lists: list[Any] = field(default_factory=list, repr=False)

    def factor(self, *sizes: Any) -> Any:
        """Measured time over roofline time at these sizes (arrays that broadcast, or numbers; at least 1)."""
        if all(isinstance(size, int | float) for size in sizes):
            return math.exp(self._at_numbers([max(size, 1.0) for size in sizes]))
        return np.exp(self._at_arrays(np.broadcast_arrays(*(np.maximum(size, 1.0) for size in sizes))))

    def _at_numbers(self, sizes: Sequence[float]) -> float:
        """As below for plain numbers, without arrays: a search asks one size at a time."""
        if not self._lists:
            self._lists = [[axis.tolist() for axis in self.axes], self.values.ravel().tolist()]
        axes, values = self._lists
        places = [(0, 1.0)]
        for axis, size in zip(axes, sizes, strict=True):
            last, at = len(axis) - 1, math.log(size)
            low = min(max(bisect_right(axis, at) - 1, 0), last)
            part = 0.0 if low == last else min(max((at - axis[low]) / (axis[low + 1] - axis[low]), 0.0), 1.0)
            places = [
                (index * (last + 1) + low + step, weight * share)
                for index, weight in places
                for step, share in ((0, 1.0 - part), (1, part))
                if share
            ]
        return float(sum(values[index] * weight for index, weight in places))

    def _at_arrays(self, sizes: Sequence[Any]) -> Any:
        lows, parts = [], []
        for axis, size in zip(self.axes, sizes, strict=True):
            at = np.log(size)
            if len(axis) == 1:
                lows.append(np.zeros(at.shape, dtype=np.intp))
                parts.append(np.zeros(at.shape))
                continue
            low = np.clip(np.searchsorted(axis, at, side="right") - 1, 0, len(axis) - 2)
            lows.append(low)
            parts.append(np.clip((at - axis[low]) / (axis[low + 1] - axis[low]), 0.0, 1.0))
        flat, answer = self.values.ravel(), 0.0
        for steps in product((0, 1), repeat=len(self.axes)):
            index: Any = 0
            weight: Any = 1.0
            for step, low, part, axis in zip(steps, lows, parts, self.axes, strict=True):
                index = index * len(axis) + np.minimum(low + step, len(axis) - 1)
                weight = weight * (part if step else 1.0 - part)
            answer = answer + flat[index] * weight
        return answer


@dataclass(frozen=True, slots=True)
class Table:
    """One kernel in one number format: many shapes, each over the same sizes."""

    features: tuple[str, ...]
    """Names of the shapes' columns."""
    shapes: Array
    """[shape, feature]"""
    axes: tuple[Array, ...]
    """Sizes, rising."""
    values: Array
    """[shape, *sizes]: log(measured / roofline), without gaps."""

    def column(self, feature: str) -> Array:
        """One feature of all shapes."""
        return self.shapes[:, self.features.index(feature)]

    def blended(self, wanted: Mapping[str, float], weights: Mapping[str, float] | None = None) -> Grid:
        """The grid of one shape: its own where it was measured, else of up to four nearest shapes.

        Shapes count by 1 / distance^2; a distance is over the logarithms of the features, times ``weights`` (1).
        """
        target = np.array([wanted[name] for name in self.features])
        importance = np.array([(weights or {}).get(name, 1.0) for name in self.features])
        apart = (((np.log1p(self.shapes) - np.log1p(target)) * importance) ** 2).sum(axis=1)
        near = np.argsort(apart, kind="stable")[:4]
        if apart[near[0]] < 1e-12:
            values = self.values[near[0]]
        else:
            share = 1.0 / apart[near]
            values = np.tensordot(share / share.sum(), self.values[near], axes=1)
        return Grid(tuple(np.log(axis) for axis in self.axes), np.asarray(values, dtype=float))

    def only(self, feature: str, value: float) -> Table:
        """The shapes with one value of a feature, without that feature."""
        at = self.features.index(feature)
        good = self.shapes[:, at] == value
        names = self.features[:at] + self.features[at + 1 :]
        return Table(names, np.delete(self.shapes[good], at, axis=1), self.axes, self.values[good])

    def dense(self) -> Grid:
        """All shapes as further axes of one grid; shapes that were not measured have their nearest one's values."""
        sides = [np.unique(column) for column in self.shapes.T]
        full = np.array(list(product(*sides)))
        apart = ((np.log(full)[:, None, :] - np.log(self.shapes)[None, :, :]) ** 2).sum(axis=2)
        values = self.values[apart.argmin(axis=1)].reshape(*(len(side) for side in sides), *self.values.shape[1:])
        return Grid(tuple(np.log(axis) for axis in (*sides, *self.axes)), np.asarray(values, dtype=float))


def tabulated(features: tuple[str, ...], shapes: Array, sizes: Array, logs: Array) -> Table:
    """A table of rows.  Of rows that say the same the fastest counts: an engine chooses among its kernels."""
    once, shape = np.unique(shapes, axis=0, return_inverse=True)
    axes, places = zip(*(np.unique(size, return_inverse=True) for size in sizes.T), strict=True)
    values = np.full((len(once), *(len(axis) for axis in axes)), np.inf)
    np.minimum.at(values, (shape.ravel(), *(place.ravel() for place in places)), logs)
    values[np.isinf(values)] = np.nan
    return Table(features, once, axes, without_gaps(values, axes))


def without_gaps(values: Array, axes: tuple[Array, ...]) -> Array:
    """Gaps between measured sizes are interpolated, gaps at the ends take the nearest value; the last axis first."""
    for axis in range(values.ndim - 1, 0, -1):
        side = np.moveaxis(values, axis, -1)
        lines = side.reshape(-1, side.shape[-1]).copy()
        known = ~np.isnan(lines)
        patterns, pattern = np.unique(known, axis=0, return_inverse=True)
        at = np.log(axes[axis - 1])
        for number, mask in enumerate(patterns):
            if mask.any() and not mask.all():
                chosen = np.flatnonzero(pattern.ravel() == number)
                place = np.interp(at, at[mask], np.arange(mask.sum()))
                low = np.minimum(place.astype(int), mask.sum() - 1)
                high = np.minimum(low + 1, mask.sum() - 1)
                some = lines[chosen][:, mask]
                lines[chosen] = some[:, low] * (1 - (place - low)) + some[:, high] * (place - low)
        values = np.moveaxis(lines.reshape(side.shape), -1, axis)
    return np.ascontiguousarray(values)
