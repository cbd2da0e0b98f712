"""How many layers can the stages of a strategy hold within some seconds each?

Stage r holds at most ::

    N_r(tau) = floor min( (tau - e_r) / t,   room_r / (S + f_r a),   (room_r + H) / (S + f_r A),
                          (tau - e_r + rho room_r / (f_r d)) / (t + rho (S + f_r A) / (f_r d)) )

layers: time without relief; memory with every layer relieved; memory where relief moves bytes to the host, which holds
H bytes a device; time with as many relieved layers as memory forces, a fraction allowed.  A layer takes ``t`` seconds,
has ``S`` state bytes and keeps ``A`` / ``a`` bytes without / with relief, which costs ``rho`` seconds; ``d = A - a``.
Of stage r, the ends take ``e_r`` seconds, ends and buffers leave ``room_r`` bytes, and ``f_r`` micro-batches are in
flight.  Where relief frees nothing, ``a = A`` and the last term falls away.

With several layer kinds, N_r counts the most frequent kind only: dropping the others loosens a bound and keeps it a
bound.  Shape letters: R rows, P stages.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDING = 1e-9
"""Relative slack that keeps floating-point rounding from cutting off a feasible split."""


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Bytes of a device, and of its share of host memory, that a plan may use."""

    device_bytes: float
    host_bytes: float = np.inf


@dataclass(frozen=True, slots=True)
class ReliefOffer:
    """What relief offers a stage: bytes a relieved layer keeps, seconds a byte freed (infinite: frees none), [R, P].

    ``moved_bytes``: how much it can free at most.
    """

    kept_bytes: Array
    price: Array
    moved_bytes: float

    def cheapest(self, other: ReliefOffer) -> ReliefOffer:
        """The best of both in each respect."""
        return ReliefOffer(
            np.minimum(self.kept_bytes, other.kept_bytes),
            np.minimum(self.price, other.price),
            max(self.moved_bytes, other.moved_bytes),
        )


@dataclass(frozen=True, slots=True)
class StageRoom:
    """What the stages of rows with the same number of stages offer, whatever is relieved: [R, P] and [R, 1].

    ``needed`` layers must be held; ``free_bytes`` is room_r, ``state_bytes`` S and ``kept_bytes`` A of the docstring.
    """

    stages: int
    needed: float
    layer_s: Array
    ends_s: Array
    kept_bytes: Array
    state_bytes: Array
    in_flight: Array
    free_bytes: Array

    def relief(self, relieved_bytes: Array, relief_s: Array, moved_bytes: float = np.inf) -> ReliefOffer:
        """Relief under which a layer keeps ``relieved_bytes`` and costs ``relief_s`` more: [R] each."""
        saving = self.in_flight * (self.kept_bytes - relieved_bytes[:, None])
        price = np.divide(relief_s[:, None], saving, out=np.full_like(saving, np.inf), where=saving > 0)
        return ReliefOffer(relieved_bytes[:, None], price, moved_bytes)


class Capacity:
    """N_r(tau) for rows with the same number of stages.

    Arrays are [P, R] here, so that what runs over the stages adds up whole rows of memory.
    """

    def __init__(self, room: StageRoom, relief: ReliefOffer) -> None:
        self.needed, self.stages = room.needed, room.stages
        free, state, kept = (_by_stage(each) for each in (room.free_bytes, room.state_bytes, room.kept_bytes))
        layer_s, ends_s, flight = (_by_stage(each) for each in (room.layer_s, room.ends_s, room.in_flight))
        price, relieved = _by_stage(relief.price), _by_stage(relief.kept_bytes)
        whole, layer = state + flight * kept, state + flight * relieved
        # Everything of a layer may be on the host.
        held = np.divide(free, layer, out=np.full(layer.shape, np.inf), where=layer > 0)
        if np.isfinite(relief.moved_bytes):
            most = np.divide(free + relief.moved_bytes, whole, out=np.full(whole.shape, np.inf), where=whole > 0)
            held = np.minimum(held, most)
        # A stage may be empty of this kind of layer, but its ends and its buffers must fit all the same.
        self.possible: Mask = np.asarray((free > 0).all(axis=0) & (held >= 0).all(axis=0))
        useful = np.isfinite(price)
        price = np.where(useful, price, 0.0)
        credit_s = np.where(useful, price * free, np.inf)
        unit_s = layer_s + price * whole
        relief_bound = np.where(useful, unit_s * self.needed - credit_s, 0.0)
        self.everything_s: Array = (ends_s + np.maximum(layer_s * self.needed, relief_bound)).max(axis=0)
        """A bottleneck at which time no longer limits anything: [R]."""
        self._begins_s = ends_s * (1 + ROUNDING) - ROUNDING * layer_s
        self._credit_s = credit_s - self._begins_s
        self._layers_a_s, self._relieved_a_s = 1.0 / layer_s, 1.0 / unit_s
        self._most = held * (1 + ROUNDING)

    def take(self, index: NDArray[np.int64]) -> Capacity:
        """Some of the rows."""
        picked = copy(self)
        picked.possible, picked.everything_s = self.possible[index], self.everything_s[index]
        for name in ("_begins_s", "_credit_s", "_layers_a_s", "_relieved_a_s", "_most"):
            setattr(picked, name, getattr(self, name)[:, index])
        return picked

    def holds_all(self, tau: Array) -> Mask:
        """Whether the stages together can hold every layer within ``tau`` seconds each: [R]."""
        left = tau * (1 + ROUNDING)
        count = (left - self._begins_s) * self._layers_a_s
        np.minimum(count, (left + self._credit_s) * self._relieved_a_s, out=count)
        np.minimum(count, self._most, out=count)
        np.maximum(count, 0.0, out=count)
        np.floor(count, out=count)
        return np.asarray((count.sum(axis=0) >= self.needed) & self.possible)


def _by_stage(values: Array) -> Array:
    """[R, P] or [R, 1] -> [P, R] or [1, R]."""
    return np.ascontiguousarray(values.T)
