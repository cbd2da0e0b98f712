"""The rings of a torus that a group of ranks occupies, and the bandwidth that they give it.

A device of an r-axis torus has two links an axis.  Devices are numbered row-major: the last axis runs fastest, so a
step along axis i is ``step_i = product(shape[i+1:])`` device numbers.  A group (size g, stride s) has along axis i::

    extent_i = min(g s, step_i n_i) / max(s, step_i)        clipped to 1 .. n_i
    hops_i   = max(1, s / step_i)                           links between neighbours; that many siblings share them
    links_i  = 2 on a closed ring (extent_i hops_i = n_i >= 4), 1 on an open line, 0 where extent_i = 1

    bandwidth = link * sum_i links_i / hops_i

A ring laid over an open line goes out and comes back, so it gets one direction's worth.  Rings are closed only from
four devices on: with two, both links join the same pair and are one line; with three no vendor ships one.
Exact where sizes and strides divide the shape; between those the extents are rounded down.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

RING_CLOSES_AT = 4


def torus_links(shape: tuple[int, ...], group_size: ArrayLike, stride: ArrayLike) -> NDArray[np.float64]:
    """Links' worth of one-way bandwidth that each member of a group gets; at least one link's share."""
    size, step_of_group = np.broadcast_arrays(
        np.asarray(group_size, dtype=np.float64), np.asarray(stride, dtype=np.float64)
    )
    total = np.zeros(size.shape, dtype=np.float64)
    most_hops = np.ones(size.shape, dtype=np.float64)
    span = size * step_of_group
    step = 1.0
    for length in reversed(shape):
        extent = np.floor(np.minimum(span, step * length) / np.maximum(step_of_group, step))
        extent = np.clip(extent, 1, length)
        hops = np.clip(step_of_group / step, 1, length)
        closed = (length >= RING_CLOSES_AT) & (extent * hops >= length)
        total += np.where(extent > 1, np.where(closed, 2.0, 1.0), 0.0) / hops
        most_hops = np.where(extent > 1, hops, most_hops)
        step *= length
    return np.where(total > 0, total, 1.0 / most_hops)


@lru_cache(maxsize=256)
def torus_slice(shape: tuple[int, ...], num_devices: int) -> tuple[int, ...]:
    """The most cubic sub-torus of ``shape`` with ``num_devices`` devices.

    Where no box of that size fits, the devices form a line: ``(1, .., num_devices)``.
    """
    best: tuple[int, ...] | None = None
    for box in _boxes(shape, num_devices):
        if best is None or (max(box), -min(box), box) < (max(best), -min(best), best):
            best = box
    return best or (1,) * (len(shape) - 1) + (num_devices,)


def is_box(shape: tuple[int, ...], num_devices: int) -> bool:
    """Does ``shape`` have a box-shaped sub-torus of ``num_devices``?"""
    return bool(_boxes(shape, num_devices))


def _boxes(shape: tuple[int, ...], num_devices: int) -> list[tuple[int, ...]]:
    if len(shape) == 1:
        return [(num_devices,)] if num_devices <= shape[0] else []
    return [
        (length, *rest)
        for length in _divisors(num_devices)
        if length <= shape[0]
        for rest in _boxes(shape[1:], num_devices // length)
    ]


def _divisors(number: int) -> list[int]:
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})
