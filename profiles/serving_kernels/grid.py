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

from profiles.arrays import Array, Ints

NEIGHBOURS = 4
_IMPORTANCE = {"head_dim": 4.0, "nodes": 4.0}
"""Other kernels, not larger ones."""


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
        base: Any = 0
        corners = np.zeros(1, dtype=np.intp)
        parts = []
        stride = self.values.size
        for axis, size in zip(self.axes, sizes, strict=True):
            stride //= len(axis)
            if len(axis) == 1:
                continue
            at = np.log(size)
            low = np.clip(np.searchsorted(axis, at, side="right") - 1, 0, len(axis) - 2)
            parts.append(np.clip((at - axis[low]) / np.diff(axis)[low], 0.0, 1.0))
            base = base + low * stride
            corners = np.add.outer(corners, (0, stride)).ravel()
        answer = self.values.ravel()[np.add.outer(corners, base)]
        for part in reversed(parts):
            answer = answer[0::2] + (answer[1::2] - answer[0::2]) * part
        return np.broadcast_to(answer[0], sizes[0].shape)


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

    def apart(self, wanted: Any) -> Array:
        """Squared distances of all shapes to one: over logarithms of the features, some of which count more."""
        importance = np.array([_IMPORTANCE.get(name, 1.0) for name in self.features])
        distances: Array = (((np.log1p(self.shapes) - np.log1p(wanted)) * importance) ** 2).sum(axis=1)
        return distances

    def blended(self, wanted: Mapping[str, float]) -> Grid:
        """The grid of one shape: its own where it was measured, else of the four nearest by 1 / distance^2."""
        apart = self.apart(np.array([wanted[name] for name in self.features]))
        near = np.argsort(apart, kind="stable")[:NEIGHBOURS]
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

    def dense(self) -> Table:
        """One shape with all features as further sizes; what was not measured has its nearest shape's values."""
        sides = [np.unique(column) for column in self.shapes.T]
        full = np.array(list(product(*sides)))
        apart = ((np.log(full)[:, None, :] - np.log(self.shapes)[None, :, :]) ** 2).sum(axis=2)
        values = self.values[apart.argmin(axis=1)].reshape(1, *(len(side) for side in sides), *self.values.shape[1:])
        return Table(("one",), np.ones((1, 1)), (*sides, *self.axes), values)


def tabulated(features: tuple[str, ...], shapes: Array, sizes: Array, logs: Array) -> Table:
    """A table of rows: [row, feature], [row, size], [row]."""
    first, shape = distinct(shapes)
    axes, places = zip(*(np.unique(size, return_inverse=True) for size in sizes.T), strict=True)
    values = np.full((len(first), *(len(axis) for axis in axes)), np.nan)
    values[(shape, *(place.ravel() for place in places))] = logs
    return Table(features, shapes[first], axes, without_gaps(values, axes))


def distinct(rows: Array) -> tuple[Ints, Ints]:
    """First row of each different one in rising order, and which of them each row is: faster than NumPy's own."""
    code: Any = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        values, place = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + place.ravel(), return_inverse=True)[1].ravel()
    first = np.unique(code, return_index=True)[1]
    return first, code


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
