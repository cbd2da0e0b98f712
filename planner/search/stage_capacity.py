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
    """N_r(tau) for rows with the same number of stages."""

    def __init__(self, room: StageRoom, relief: ReliefOffer) -> None:
        self.needed, self.layer_s, self.ends_s, self.stages = room.needed, room.layer_s, room.ends_s, room.stages
        free, state = room.free_bytes, room.state_bytes
        whole, layer = state + room.in_flight * room.kept_bytes, state + room.in_flight * relief.kept_bytes
        # Everything of a layer may be on the host.
        held = np.divide(free, layer, out=np.full(layer.shape, np.inf), where=layer > 0)
        if np.isfinite(relief.moved_bytes):
            most = np.divide(free + relief.moved_bytes, whole, out=np.full(whole.shape, np.inf), where=whole > 0)
            held = np.minimum(held, most)
        self.by_memory = np.where(free > 0, held, -1.0)
        useful = np.isfinite(relief.price)
        price = np.where(useful, relief.price, 0.0)
        self.credit_s = np.where(useful, price * free, np.inf)
        self.unit_s = self.layer_s + price * whole

    def holds_all(self, tau: Array, index: NDArray[np.int64] | slice) -> Mask:
        """Whether the stages together can hold every layer within ``tau`` seconds each."""
        left = (tau[:, None] - self.ends_s[index]) * (1 + ROUNDING) + ROUNDING * self.layer_s[index]
        count = np.minimum(left / self.layer_s[index], self.by_memory[index] * (1 + ROUNDING))
        count = np.minimum(count, (left + self.credit_s[index]) / self.unit_s[index])
        enough = np.asarray(np.floor(np.maximum(count, 0.0)).sum(axis=1) >= self.needed)
        # A stage may be empty of this kind of layer, but its ends and its buffers must fit all the same.
        possible = np.asarray((self.by_memory[index] >= 0).all(axis=1))
        return enough & possible

    def seconds_of_everything(self) -> Array:
        """A bottleneck at which time no longer limits anything: [R]."""
        relief_bound = np.where(np.isfinite(self.credit_s), self.unit_s * self.needed - self.credit_s, 0.0)
        everything: Array = (self.ends_s + np.maximum(self.layer_s * self.needed, relief_bound)).max(axis=1)
        return everything
