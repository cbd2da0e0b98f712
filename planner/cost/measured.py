"""What do measurements say where they exist?  Corrections of the datasheet model, faded out with distance.

Operators are corrected in utilisation space: ``t = roofline / util``, with ``log util`` interpolated by inverse squared
distance over the four nearest measured shapes in log2(m, n, k) (attention: log2 of the sequence).  Beyond ``REACH``
octaves the datasheet efficiency stands.  Collectives are corrected by ``log(measured / model)``, linear in log(size),
for the same operation, group size and stride; outside the measured sizes the end value holds.

Accuracy of this form on published tables, site held out: 4 % median, 15 % at the 90th percentile for matmuls (log-space
inverse distance over 4 sites, 35,742 points of AIConfigurator); linear interpolation over a x4 size grid 2 % / 11 % for
collectives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.cost.collective import Collective
from profiles.table import MeasuredPoint, ProfileTable

Array = NDArray[np.float64]

NEIGHBOURS = 4
REACH = 2.0
"""Octaves (Euclidean, log2) beyond which a measurement says nothing about a shape."""
MATMUL_SHAPE = ("m", "n", "k")
COLLECTIVES: tuple[Collective, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")


@dataclass(frozen=True, slots=True)
class MeasuredOperators:
    """Measured seconds over model seconds of one operator class: log2 sites [P, D] and log ratios [P]."""

    sites: Array
    log_ratio: Array

    def factor(self, *shape: Array) -> Array:
        """Factor on the model's seconds for each shape; 1 where no measurement is near: broadcast of ``shape``."""
        columns = np.broadcast_arrays(*shape)
        flat = np.stack([np.log2(np.maximum(column, 1e-9)).ravel() for column in columns], axis=1)
        distinct, index = np.unique(flat, axis=0, return_inverse=True)
        factors = np.array([self._one(site) for site in distinct])
        return factors[index.reshape(-1)].reshape(columns[0].shape)

    def _one(self, site: Array) -> float:
        distance = np.sqrt(((self.sites - site) ** 2).sum(axis=1))
        nearest = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        if distance[nearest[0]] > REACH:
            return 1.0
        near = nearest[distance[nearest] <= REACH]
        weight = 1.0 / (distance[near] ** 2 + 1e-6)
        return float(np.exp((weight * self.log_ratio[near]).sum() / weight.sum()))


@dataclass(frozen=True, slots=True)
class MeasuredCollectives:
    """Log ratios of measured over model seconds by (operation, group size, stride), each over log2 of the size."""

    curves: dict[tuple[str, int, int], tuple[Array, Array]] = field(default_factory=dict)

    def factor(self, op: str, size_bytes: Array, group_size: Array, stride: Array) -> Array:
        """Factor on the model's seconds; 1 where the group was not measured."""
        size_bytes, group_size, stride = np.broadcast_arrays(size_bytes, group_size, stride)
        result = np.ones(size_bytes.shape)
        for (name, group, step), (sizes, ratios) in self.curves.items():
            if name == op:
                here = (group_size == group) & (stride == step)
                result[here] = np.exp(np.interp(np.log2(np.maximum(size_bytes[here], 1.0)), sizes, ratios))
        return result


def measured_operators(
    table: ProfileTable, operator: str, dtype: str, names: tuple[str, ...], model_s: Callable[..., Array]
) -> MeasuredOperators | None:
    """Compare the points of one operator class with the model; None when there are none."""
    points = [p for p in table.points if p.operator == operator and p.dtype == dtype and set(names) <= set(p.shape)]
    if not points:
        return None
    columns = [np.array([float(point.shape[name]) for point in points]) for name in names]
    seconds = np.array([point.time_s for point in points])
    return MeasuredOperators(sites=np.log2(np.stack(columns, axis=1)), log_ratio=np.log(seconds / model_s(*columns)))


def measured_collectives(
    table: ProfileTable, model_s: Callable[[Collective, Array, Array, Array], Array]
) -> MeasuredCollectives | None:
    """Compare the collective points with the model, curve by curve; None when there are none."""
    groups: dict[tuple[Collective, int, int], list[MeasuredPoint]] = {}
    for op in COLLECTIVES:
        for point in table.points:
            if point.operator == op and {"size_bytes", "group_size"} <= set(point.shape):
                key = (op, point.shape["group_size"], point.shape.get("stride", 1))
                groups.setdefault(key, []).append(point)
    if not groups:
        return None
    curves: dict[tuple[str, int, int], tuple[Array, Array]] = {}
    for (op, group, stride), points in groups.items():
        points.sort(key=lambda point: point.shape["size_bytes"])
        sizes = np.array([float(point.shape["size_bytes"]) for point in points])
        model = model_s(op, sizes, np.full_like(sizes, float(group)), np.full_like(sizes, float(stride)))
        ratio = np.log(np.array([point.time_s for point in points]) / model)
        curves[op, group, stride] = (np.log2(sizes), ratio)
    return MeasuredCollectives(curves)
