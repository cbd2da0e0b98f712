"""Measured times where they exist: the measured rungs of the ladder, above the datasheet models.

Operators: the profile's own time wherever it has one (direct hit to sibling transfer), else the datasheet model.  A
matmul that was measured alone runs slower inside a step (power, clocks): its times are divided by the same sustained
fraction that the datasheet model uses; times from traces of running steps are taken as they are.

Collectives: a measured curve where exactly this group shape was measured.  For other sizes of group inside the same
kind of network, the hierarchical model is corrected by the ratio measured / model of the nearest measured group size;
groups across nodes are never corrected by groups inside one.  Bandwidth itself does not transfer between group sizes
(-29 to +44 % from 4 to 8 devices of one box), hence the wide spread of that rung.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.predict.collective import Collective, members_within
from profiles.levels import NetworkLevel
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.profile import CollectiveKey, Profile
from profiles.prediction.rungs import Prediction, Rung
from solver.arrays import Array

ModelTime = Callable[[Collective, Array, Array, Array], Array]

SHARING_SIGMA = 0.15
"""Spread of the correction for shared NICs: measured inefficiency over fair shares is 1.1 to 1.4."""
OTHER_GROUP_SIGMA = 0.20
"""Spread after correcting the model by the ratio of another group size."""


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """Operator times of one profile at the precisions of a run; ``sustained`` is the rate in a step over a lone run."""

    profile: Profile
    matmul_dtype: str
    wide_dtype: str
    sustained: float

    def matmul(
        self,
        m: Array,
        n: Array,
        k: Array,
        groups: Array | float = 1.0,
        phase: str = "forward",
        *,
        wide: bool = False,
    ) -> Prediction:
        """``groups`` products [m, k] x [k, n] inside a step, sizes as the phase runs them; ``wide``: in 16 bit."""
        dtype = self.wide_dtype if wide else self.matmul_dtype
        found = self.profile.matmul(m, n, k, dtype, groups, phase)
        table = self.profile.matmul_table(dtype, phase)
        if table is not None and table.origin.inside_step:
            return found
        return Prediction(found.time_s / self.sustained, found.sigma, found.rung)

    def attention(self, batch: Array, query: Array, heads: Array, kv_heads: Array, head_dim: int) -> Prediction:
        """Causal attention, forward."""
        return self.profile.attention(batch, query, heads, kv_heads, head_dim, self.wide_dtype)

    def moved(self, operator: str, moved_bytes: Array) -> Prediction:
        """A memory-bound operator class."""
        return self.profile.moved(operator, moved_bytes, self.wide_dtype)


def better_of(measured: Prediction, model_s: Array) -> Array:
    """Measured seconds where there are any, else the model's; zero work stays zero."""
    known = (measured.rung <= Rung.TRANSFER) & (model_s > 0)
    return np.where(known, measured.time_s, model_s)


@dataclass(frozen=True, slots=True)
class MeasuredCollectives:
    """Curves of a profile laid over the hierarchical model of one pool.

    ``ratios``: log(measured / model) over log2(size) by (operation, nodes, group size).
    """

    profile: Profile
    devices_per_node: int
    levels: tuple[NetworkLevel, ...]
    ratios: dict[tuple[str, bool], dict[int, tuple[Array, Array]]] = field(default_factory=dict)

    def predict(
        self, op: Collective, size_bytes: Array, group_size: Array, stride: Array, model_s: Array
    ) -> Prediction:
        """Time, spread and rung of each collective; ROOFLINE (spread NaN) where only the model speaks."""
        size, group, step, model = (
            each.astype(np.float64) for each in np.broadcast_arrays(size_bytes, group_size, stride, model_s)
        )
        seconds, sigma = model.copy(), np.full(size.shape, np.nan)
        rung = np.full(size.shape, Rung.ROOFLINE, dtype=np.int8)
        nodes = self._nodes(group, step)
        alone = (group <= 1) | (size <= 0)
        for members, span in {(int(g), int(k)) for g, k in zip(group[~alone], nodes[~alone], strict=True)}:
            here = ~alone & (group == members) & (nodes == span)
            found = self._measured(op, members, span, size[here])
            if found is not None:
                seconds[here], sigma[here], rung[here] = found.time_s, found.sigma, found.rung
                continue
            correction = self._nearest_ratio(op, members, span)
            if correction is not None:
                log_ratio = np.interp(np.log2(np.maximum(size[here], 1.0)), *correction)
                seconds[here] = model[here] * np.exp(log_ratio)
                sigma[here], rung[here] = OTHER_GROUP_SIGMA, Rung.TRANSFER
        return Prediction(seconds, sigma, rung)

    def _measured(self, op: Collective, members: int, span: int, size_bytes: Array) -> Prediction | None:
        """The curve of this group beside its siblings; one measured alone pays for the NICs that it will share."""
        siblings = self.profile.collectives.get(CollectiveKey(op, members, span, concurrent=True))
        if siblings is not None:
            return siblings.predict(size_bytes)
        alone = self.profile.collectives.get(CollectiveKey(op, members, span))
        if alone is None:
            return None
        found = alone.predict(size_bytes)
        factor = self._sharing(members, span)
        if factor == 1.0:
            return found
        sigma = np.hypot(found.sigma, SHARING_SIGMA)
        return Prediction(found.time_s * factor, sigma, np.maximum(found.rung, np.int8(Rung.TRANSFER)))

    def _sharing(self, members: int, span: int) -> float:
        """How much faster a group across nodes is alone than beside its siblings: NICs that it borrows from them.

        Alone, its c members of a node drive their own NICs at the pair rate, up to all of the node; together each
        device has its share: ``min(pair rate / share, devices / c)``.  1 where each device owns its NICs (rails).
        """
        if span == 1:
            return 1.0
        outer, per_node = self.levels[-1], max(members // span, 1)
        borrowed = outer.pair_bandwidth_bytes_per_s / outer.bandwidth_bytes_per_s
        return max(1.0, min(borrowed, self.devices_per_node / per_node))

    def _nodes(self, group: Array, stride: Array) -> Array:
        """Nodes that a group spans: 1 inside the innermost level, whatever boxes it is built from."""
        inside = members_within(self.levels[0], group, stride)
        return np.where(inside >= group, 1.0, nodes_of_group(group, stride, self.devices_per_node))

    def _nearest_ratio(self, op: Collective, members: int, span: int) -> tuple[Array, Array] | None:
        known = self.ratios.get((op, span > 1))
        if not known:
            return None
        return known[min(known, key=lambda other: (abs(np.log2(other / members)), other))]


def nodes_of_group(group: Array, stride: Array, devices_per_node: int) -> Array:
    """Nodes on which a group has members, ``ceil(size / min(size, max(1, floor(devices of a node / stride))))``.

    A stride of a whole node or more is one member a node, however far apart they are.
    """
    per_node = np.maximum(np.floor(devices_per_node / stride), 1.0)
    return np.ceil(group / np.minimum(per_node, group))


def measured_collectives(
    profile: Profile, levels: Sequence[NetworkLevel], devices_per_node: int, model_s: ModelTime
) -> MeasuredCollectives | None:
    """Compare every curve of the profile with the model; None when there are none."""
    if not profile.collectives or not levels:
        return None
    ratios: dict[tuple[str, bool], dict[int, tuple[Array, Array]]] = {}
    for key, curve in sorted(profile.collectives.items(), key=lambda item: item[0]):
        if key.operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"):
            ratio = _ratio(key, curve, levels, devices_per_node, model_s)
            ratios.setdefault((key.operation, key.num_nodes > 1), {})[key.group_size] = ratio
    return MeasuredCollectives(profile, devices_per_node, tuple(levels), ratios)


def _ratio(
    key: CollectiveKey,
    curve: CollectiveCurve,
    levels: Sequence[NetworkLevel],
    devices_per_node: int,
    model_s: ModelTime,
) -> tuple[Array, Array]:
    """Log2 sizes and log ratios of one curve; groups across nodes take whole nodes where they can."""
    per_node = max(key.group_size // key.num_nodes, 1)
    stride = 1 if key.num_nodes == 1 else max(devices_per_node // per_node, 1)
    group = np.full_like(curve.sizes, float(key.group_size))
    op: Collective = key.operation  # type: ignore[assignment]
    model = model_s(op, curve.sizes, group, np.full_like(curve.sizes, float(stride)))
    return np.log2(curve.sizes), np.log(curve.times_s / np.maximum(model, 1e-12))
