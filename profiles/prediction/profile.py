"""The profile of a device: what its measurements say about operators and collectives (the measured rungs).

A profile is derived from stored observations and can always be derived again: it is identified by its content
(``profile_id``), cached as a file, and thrown away freely.  Every answer is a ``Prediction``: time, spread and rung;
where nothing measured is near the rung says MISSING and the caller's own model answers (roofline, or refusal).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Array
from profiles.document import Document
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.curve_table import CurveTable
from profiles.prediction.roofline import Roofline
from profiles.prediction.rungs import Prediction, Rung

GROUPED_SIGMA = 0.15
"""A grouped product is predicted from the plain one of the same rows; measured ratios of the two differ that much."""
OTHER_HEAD_DIM_SIGMA = 0.10


class TableOrigin(Document):
    """Where the numbers of one table come from."""

    operator: str
    dtype: str
    variant: str = ""
    device: str = ""
    environment: str = ""
    format: str = ""
    batch_ids: tuple[str, ...] = ()
    num_points: int = 0
    transferred_from: str = ""
    extra_sigma: float = 0.0
    inside_step: bool = False
    """Measured inside a running step (a trace), not alone: power and clocks are already in the times."""


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """Curves of one operator at one number format, with the roofline of the device they are used for."""

    curves: CurveTable
    roofline: Roofline
    origin: TableOrigin

    def predict(self, roofline_s: Array, axis: Array, sites: Array) -> Prediction:
        """Times for shapes given with their own roofline seconds: axis [Q], sites [Q, D]."""
        log_util, sigma, rung = self.curves.predict(axis, sites)
        extra = self.origin.extra_sigma
        if extra:
            sigma = np.sqrt(sigma**2 + extra**2)
            rung = np.where(rung < Rung.TRANSFER, np.int8(Rung.TRANSFER), rung)
        known = rung != Rung.MISSING
        return Prediction(np.where(known, roofline_s / np.exp(log_util), np.nan), sigma, rung)


@dataclass(frozen=True, slots=True, order=True)
class CollectiveKey:
    """One group shape: ``num_nodes`` 1 = inside a node (or scale-up domain); ``concurrent`` = siblings ran as well."""

    operation: str
    group_size: int
    num_nodes: int
    concurrent: bool = False


@dataclass(slots=True)
class Profile:
    """All tables of one device.

    Keys of ``operators``: (operator, dtype, variant).  The variant of attention is its head size, that of a matmul's
    gradients their phase.
    """

    device: str
    operators: dict[tuple[str, str, str], OperatorTable] = field(default_factory=dict)
    collectives: dict[CollectiveKey, CollectiveCurve] = field(default_factory=dict)
    collective_origins: tuple[TableOrigin, ...] = ()
    profile_id: str = ""

    @property
    def num_points(self) -> int:
        """Measured shapes and sizes behind all tables."""
        shapes = sum(table.origin.num_points for table in self.operators.values())
        return shapes + sum(origin.num_points for origin in self.collective_origins)

    @property
    def origins(self) -> tuple[TableOrigin, ...]:
        """Where every table comes from."""
        return (*(table.origin for table in self.operators.values()), *self.collective_origins)

    def matmul(
        self, m: Array, n: Array, k: Array, dtype: str, groups: Array | float = 1.0, phase: str = "forward"
    ) -> Prediction:
        """``groups`` products [m, k] x [k, n] in one kernel: sizes broadcast.

        ``phase`` dgrad or wgrad: sizes as that product runs; its own table where it was measured, else the forward's.
        """
        m, n, k, groups = (np.asarray(each, dtype=np.float64) for each in np.broadcast_arrays(m, n, k, groups))
        flat = [np.maximum(each.ravel(), 1.0) for each in (m, n, k, groups)]
        plain = self.matmul_table(dtype, phase)
        grouped = self.operators.get(("grouped_matmul", dtype, ""))
        several = flat[3] > 1
        found = missing(several.shape) if plain is None else self._plain_matmul(plain, flat, several)
        if grouped is not None and several.any():
            one = grouped.predict(
                grouped.roofline.matmul_s(*flat), flat[0], np.stack([flat[1], flat[2], flat[3]], axis=1)
            )
            found = _chosen(several & (one.rung != Rung.MISSING), one, found)
        return _shaped(found, m.shape)

    def matmul_table(self, dtype: str, phase: str) -> OperatorTable | None:
        """The table that answers for one phase: its own, else the forward's."""
        return self.operators.get(("matmul", dtype, phase)) or self.operators.get(("matmul", dtype, ""))

    @staticmethod
    def _plain_matmul(table: OperatorTable, flat: list[Array], several: NDArray[np.bool_]) -> Prediction:
        """A grouped product runs like the plain one of all its rows, on its own roofline, less surely."""
        sites = np.stack([flat[1], flat[2]], axis=1)
        found = table.predict(table.roofline.matmul_s(*flat), flat[0] * flat[3], sites)
        sigma = np.where(several, np.sqrt(found.sigma**2 + GROUPED_SIGMA**2), found.sigma)
        return Prediction(found.time_s, sigma, found.rung)

    def attention(
        self, batch: Array, query: Array, heads: Array, kv_heads: Array, head_dim: int, dtype: str
    ) -> Prediction:
        """Causal attention over whole sequences of ``query`` tokens, forward."""
        sizes = [np.asarray(each, dtype=np.float64) for each in np.broadcast_arrays(batch, query, heads, kv_heads)]
        table, extra = self._attention_table(head_dim, dtype)
        if table is None:
            return missing(sizes[0].shape)
        b, s, h, g = (np.maximum(each.ravel(), 1.0) for each in sizes)
        found = table.predict(table.roofline.attention_s(b, s, h, g, head_dim), s, np.stack([b, h, g], axis=1))
        return _shaped(Prediction(found.time_s, np.sqrt(found.sigma**2 + extra**2), found.rung), sizes[0].shape)

    def moved(self, operator: str, moved_bytes: Array, dtype: str) -> Prediction:
        """A memory-bound operator class (norm, activation, ...) that moves ``moved_bytes``."""
        table = self.operators.get((operator, dtype, ""))
        if table is None:
            return missing(moved_bytes.shape)
        flat = np.maximum(moved_bytes.ravel(), 1.0)
        found = table.predict(table.roofline.moved_s(flat), flat, np.ones((len(flat), 1)))
        return _shaped(found, moved_bytes.shape)

    def _attention_table(self, head_dim: int, dtype: str) -> tuple[OperatorTable | None, float]:
        exact = self.operators.get(("attention", dtype, str(head_dim)))
        if exact is not None:
            return exact, 0.0
        others = [int(variant) for name, kind, variant in self.operators if name == "attention" and kind == dtype]
        if not others:
            return None, 0.0
        nearest = min(others, key=lambda other: (abs(np.log2(other / head_dim)), other))
        octaves = abs(float(np.log2(nearest / head_dim)))
        return self.operators["attention", dtype, str(nearest)], OTHER_HEAD_DIM_SIGMA * max(octaves, 0.5)


def missing(shape: tuple[int, ...]) -> Prediction:
    """Nothing is known for any of these."""
    return Prediction(np.full(shape, np.nan), np.full(shape, np.inf), np.full(shape, Rung.MISSING, dtype=np.int8))


def _chosen(where: NDArray[np.bool_], first: Prediction, second: Prediction) -> Prediction:
    return Prediction(
        np.where(where, first.time_s, second.time_s),
        np.where(where, first.sigma, second.sigma),
        np.where(where, first.rung, second.rung),
    )


def _shaped(found: Prediction, shape: tuple[int, ...]) -> Prediction:
    return Prediction(found.time_s.reshape(shape), found.sigma.reshape(shape), found.rung.reshape(shape))
