"""The number of layers that the stages of a strategy can hold within some seconds each.

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

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array, Mask

ROUNDING = 1e-9
"""Relative slack that keeps floating-point rounding from cutting off a feasible split."""


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Bytes of a device, and of its share of host memory, that a plan may use."""

    device_bytes: float
    host_bytes: float = np.inf


@dataclass(frozen=True, slots=True)
class ReliefOffer:
    """What relief offers a stage: bytes a relieved layer keeps, seconds a byte freed (infinite: frees none).

    Bytes and ``moved_bytes``, how much it can free at most, are [1, R], the price is [P, R].
    """

    kept_bytes: Array
    price: Array
    moved_bytes: Array

    def cheapest(self, other: ReliefOffer) -> ReliefOffer:
        """The best of both in each respect."""
        return ReliefOffer(
            np.minimum(self.kept_bytes, other.kept_bytes),
            np.minimum(self.price, other.price),
            np.maximum(self.moved_bytes, other.moved_bytes),
        )

    def take(self, index: NDArray[np.int64]) -> ReliefOffer:
        """Some of the rows."""
        return ReliefOffer(self.kept_bytes[:, index], self.price[:, index], self.moved_bytes[:, index])

    @classmethod
    def concatenate(cls, parts: Sequence[ReliefOffer]) -> ReliefOffer:
        """All rows of ``parts`` in order."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts], axis=1) for f in fields(cls)))


class StageRoom:
    """What the stages of rows with the same number of stages offer, whatever is relieved.

    Given: one number a row [R], or one a stage and row [P, R]: what runs over the stages then adds up whole rows of
    memory.  ``needed`` layers must be held; ``free_bytes`` is room_r, ``state_bytes`` S and ``kept_bytes`` A of the
    docstring.
    """

    def __init__(
        self,
        needed: float,
        *,
        layer_s: Array,
        ends_s: Array,
        kept_bytes: Array,
        state_bytes: Array,
        in_flight: Array,
        free_bytes: Array,
    ) -> None:
        self.needed, self.stages = needed, len(ends_s)
        self.ends_s, self.in_flight, self.free_bytes = ends_s, in_flight, free_bytes
        self.layer_s, self.kept_bytes, self.state_bytes = layer_s[None], kept_bytes[None], state_bytes[None]
        self.whole_bytes: Array = self.state_bytes + in_flight * self.kept_bytes
        # A stage may be empty of this kind of layer, but its ends and its buffers must fit all the same.
        self.possible: Mask = np.asarray((free_bytes > 0).all(axis=0))
        self.begins_s: Array = ends_s * (1 + ROUNDING) - ROUNDING * self.layer_s
        self.layers_a_s: Array = 1.0 / self.layer_s

    def price(self, a_flight_s: Array) -> Array:
        """Seconds a byte freed, where it takes ``a_flight_s`` [R] with one micro-batch in flight: [P, R]."""
        return _quotient(a_flight_s[None], self.in_flight)

    def relief(self, relieved_bytes: Array, relief_s: Array, moved_bytes: float = np.inf) -> ReliefOffer:
        """Relief under which a layer keeps ``relieved_bytes`` and costs ``relief_s`` more: [R] each."""
        saving = self.in_flight * (self.kept_bytes - relieved_bytes)
        moved = np.full((1, len(relieved_bytes)), moved_bytes)
        return ReliefOffer(relieved_bytes[None], _quotient(relief_s[None], saving), moved)

    def offer(self, relieved_bytes: Array, a_flight_s: Array, moved_bytes: float = np.inf) -> ReliefOffer:
        """Relief under which a layer keeps ``relieved_bytes``, by what a byte freed costs: see ``price``; [R] each."""
        moved = np.full((1, len(relieved_bytes)), moved_bytes)
        return ReliefOffer(relieved_bytes[None], self.price(a_flight_s), moved)

    def take(self, index: NDArray[np.int64]) -> StageRoom:
        """Some of the rows."""
        picked = copy(self)
        picked.possible = self.possible[index]
        for name in ("ends_s", "in_flight", "free_bytes", "layer_s", "kept_bytes", "state_bytes"):
            setattr(picked, name, getattr(self, name)[:, index])
        for name in ("whole_bytes", "begins_s", "layers_a_s"):
            setattr(picked, name, getattr(self, name)[:, index])
        return picked


class Capacity:
    """N_r(tau) for rows with the same number of stages: [P, R]."""

    def __init__(self, room: StageRoom, relief: ReliefOffer) -> None:
        self.stages, self._room, self._relief = room.stages, room, relief
        # Everything of a layer may be on the host.
        held = _quotient(room.free_bytes, room.state_bytes + room.in_flight * relief.kept_bytes)
        if np.isfinite(relief.moved_bytes).any():
            held = np.minimum(held, _quotient(room.free_bytes + relief.moved_bytes, room.whole_bytes))
        self._most = held * (1 + ROUNDING)
        useful = np.isfinite(relief.price)
        self._frees = bool(useful.any())
        """Whether relief frees anything at all; where it does not, only time without it limits."""
        if self._frees:
            price = relief.price if useful.all() else np.where(useful, relief.price, 0.0)
            credit_s = price * room.free_bytes
            self._credit_s = (credit_s if useful.all() else np.where(useful, credit_s, np.inf)) - room.begins_s
            self._relieved_a_s = 1.0 / (room.layer_s + price * room.whole_bytes)

    def everything_s(self) -> Array:
        """A bottleneck at which time no longer limits anything: [R]."""
        room, price = self._room, self._relief.price
        useful = np.isfinite(price)
        price = np.where(useful, price, 0.0)
        unit_s = room.layer_s + price * room.whole_bytes
        relief_bound = np.where(useful, unit_s * room.needed - price * room.free_bytes, 0.0)
        seconds: Array = (room.ends_s + np.maximum(room.layer_s * room.needed, relief_bound)).max(axis=0)
        return seconds

    def take(self, index: NDArray[np.int64]) -> Capacity:
        """Some of the rows."""
        picked = copy(self)
        picked._room, picked._relief = self._room.take(index), self._relief.take(index)
        for name in ("_most", *(("_credit_s", "_relieved_a_s") if self._frees else ())):
            setattr(picked, name, getattr(self, name)[:, index])
        return picked

    def holds_all(self, tau: Array) -> Mask:
        """Whether the stages together can hold every layer within ``tau`` seconds each: [R].

        What holds for one ``tau`` holds for every larger one, also as computed here: every operation is monotone.
        """
        room, left = self._room, tau * (1 + ROUNDING)
        count = (left - room.begins_s) * room.layers_a_s
        if self._frees:
            relieved = left + self._credit_s
            relieved *= self._relieved_a_s
            np.minimum(count, relieved, out=count)
        np.minimum(count, self._most, out=count)
        np.maximum(count, 0.0, out=count)
        np.floor(count, out=count)
        return np.asarray((count.sum(axis=0) >= room.needed) & room.possible)


def _quotient(dividend: Array, divisor: Array) -> Array:
    """``dividend / divisor``; infinity where nothing is divided by."""
    positive = divisor > 0
    if positive.all():
        return np.asarray(dividend / divisor)
    quotient: Array = np.divide(dividend, divisor, out=np.full(divisor.shape, np.inf), where=positive)
    return quotient
