"""The stages for one number of samples at a time: sub-meshes of all pools, bounded and then tabulated.

``lowest_s`` is the smallest peak at which the pools have room for all layers, were every device used at the best rate
of any sub-mesh: ``sum_p N_p max_o (layers of o below the peak / devices of o) >= L``.  Sub-meshes that hold no layer
below the peak that is looked at are left out, so that pools are counted in as large units as possible; those too small
even at the peak rate of their devices are never costed.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.model.flops import forward_flops
from planner.model.operators import layer_operators
from planner.predict.cost.hardware import Hardware
from planner.search.pools.hops import hop_table_s
from planner.search.pools.problem import PoolsProblem
from planner.search.pools.stage_tables import (
    MeshTable,
    SpanClass,
    forward_shares,
    mesh_table,
    plain_times_s,
    span_classes,
)
from planner.search.pools.step_objective import StepObjective, pace_mix, pace_shares
from planner.search.pools.sub_mesh import PoolHardware, SubMesh, sub_mesh, sub_mesh_sizes, with_policies
from solver.arrays import Array, Ints
from solver.stage_assignment.stage_count import with_fewer_stages
from solver.stage_assignment.tables import AssignmentTables

WIDEST = 1.5
"""Sub-meshes are costed at once if one layer could take up to this many lowest peaks on them; others when needed."""


@dataclass(frozen=True, slots=True)
class StageTables:
    """The solver's problem with what its indices mean."""

    tables: AssignmentTables
    meshes: tuple[SubMesh, ...]
    parts: tuple[MeshTable, ...]
    peak_limit_s: float
    """Stages slower than this are not in the tables."""

    def mesh_entry(self, option: int, policy: int, from_end: int, start: int, count: int) -> tuple[SubMesh, int, int]:
        """Sub-mesh, policy row and relieved layers of a stage."""
        part = self.parts[option]
        at = policy, self.tables.position(from_end), int(self.tables.span_class[start, count - 1])
        return self.meshes[option], int(part.policy[at]), int(part.relieved[at])


@dataclass(frozen=True, slots=True)
class AlikeStages:
    """Stages of which a back-end needs all to be alike: sub-meshes of one size with one sharding, and how many."""

    meshes: tuple[SubMesh, ...]
    """At most one of each pool."""
    fewest_stages: int
    most_stages: int


class MicrobatchSpace:
    """All stages that work on ``samples`` at a time; cheap to make, tabulated when it is worth it."""

    def __init__(
        self,
        problem: PoolsProblem,
        pools: tuple[PoolHardware, ...],
        samples: int,
        spans: tuple[tuple[SpanClass, ...], Ints] | None = None,
        alike: AlikeStages | None = None,
    ) -> None:
        self.problem, self.samples = problem, samples
        self.num_microbatches = problem.workload.global_batch_size // samples
        self.objective = StepObjective(self.num_microbatches, 1.0 if problem.hides_late_work else 0.0)
        self.devices = np.array([pool.hardware.num_devices for pool in pools])
        self.classes, self.spans = spans or span_classes(problem.model, problem.model.num_layers)
        self.layers = np.array([len(span.kinds) for span in self.classes])
        self.meshes: list[SubMesh] = []
        self.plain_s: list[Array] = []
        self.forward_shares: list[Array] = []
        self.alike = alike
        self._waiting: list[tuple[PoolHardware, int]] = []
        if alike is None:
            self._waiting = [(pool, size) for pool in pools for size in sub_mesh_sizes(pool, samples)]
            self._reach(None)
        else:
            for mesh in alike.meshes:
                self._add(mesh)

    def _reach(self, peak_s: float | None) -> None:
        """Add the sub-meshes, largest first, that could hold a layer below a peak; None = a little above the lowest."""
        for pool, size in sorted(self._waiting, key=lambda item: -item[1]):
            peak = WIDEST * self._lowest_s() if peak_s is None else peak_s
            if _ideal_layer_s(self.problem, pool.hardware, size, self.samples) > peak:
                continue
            self._waiting.remove((pool, size))
            mesh = sub_mesh(pool, self.problem, size, self.samples, self.num_microbatches)
            if mesh is not None:
                self._add(mesh)

    def _add(self, mesh: SubMesh) -> None:
        self.meshes.append(mesh)
        self.plain_s.append(plain_times_s(mesh, self.classes))
        self.forward_shares.append(forward_shares(mesh, self.classes))

    def with_relief(self, relief: int) -> MicrobatchSpace:
        """The same stages, all with one kind of relief; their times without any bound those with it."""
        found = copy(self)
        found.meshes = [with_policies(mesh, mesh.rows.relief == relief) for mesh in self.meshes]
        return found

    @cached_property
    def lowest_s(self) -> float:
        """Smallest peak with room for all layers; infinite when there is none."""
        return self._lowest_s()

    def _lowest_s(self) -> float:
        if not self.meshes:
            return math.inf
        peaks = np.unique(np.concatenate(self.plain_s))
        low, high = 0, len(peaks)
        while low < high:
            middle = (low + high) // 2
            enough = self._room(float(peaks[middle])) >= self.problem.model.num_layers
            low, high = (low, middle) if enough else (middle + 1, high)
        return float(peaks[low]) if low < len(peaks) else math.inf

    def _room(self, peak_s: float) -> float:
        """Layers that all devices can hold below a peak, at the best rate of each pool."""
        rate = np.zeros(len(self.devices))
        for mesh, plain_s in zip(self.meshes, self.plain_s, strict=True):
            held = float(self.layers[plain_s <= peak_s].max(initial=0))
            rate[mesh.pool] = max(rate[mesh.pool], held / mesh.devices)
        return float(rate @ self.devices)

    @property
    def largest_s(self) -> float:
        """No stage is slower without relief."""
        return float(max(plain_s.max() for plain_s in self.plain_s)) if self.plain_s else 0.0

    def bound_s(self, peak_s: float | None = None) -> float:
        """No step with a peak of at least ``peak_s`` (default: the lowest) is faster, whatever the memory."""
        peak = self.lowest_s if peak_s is None else max(peak_s, self.lowest_s)
        if not math.isfinite(peak):
            return math.inf
        fastest = min(float((plain_s / self.layers).min()) for plain_s in self.plain_s) * self.problem.model.num_layers
        zero, rounds = np.zeros(1), self.num_microbatches
        # A stage does all its work; how much the others add depends on where the slowest one stands.
        most = self._stage_limits()[1]
        pace_s = zero + peak * float(pace_shares(rounds, most, np.array(self.forward_share))[-1])
        chained_s = float(self.objective.least(pace_s, zero + max(fastest, peak), zero, zero, most)[0])
        return max(rounds * peak, chained_s)

    def peak_below_s(self, cutoff_s: float) -> float:
        """The largest peak with which a step can still be faster than the cutoff."""
        peaks = np.unique(np.concatenate(self.plain_s))
        low, high = 0, len(peaks)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.bound_s(float(peaks[middle])) < cutoff_s else (low, middle)
        return float(peaks[low - 1]) if low else 0.0

    def relaxed(self, peak_limit_s: float) -> AssignmentTables | None:
        """The tables without memory, relief and late work: their optimum bounds that of ``tables``."""
        at = self._useful(peak_limit_s)
        if not at:
            return None
        most = self._stage_limits()[1]
        plain = [np.where(self.plain_s[index] <= peak_limit_s, self.plain_s[index], np.inf) for index in at]
        times = np.broadcast_to(
            np.stack(plain)[:, None, None, :], (len(at), 1, self._positions(at, most), len(self.classes))
        )
        return self._assignment_tables(at, times, np.zeros(times.shape), most)

    def tables(self, peak_limit_s: float, cutoff_s: float = math.inf) -> StageTables | None:
        """Costs of every stage up to a peak; None when no assignment of them has a step below the cutoff."""
        relaxed = self.relaxed(peak_limit_s)
        if relaxed is not None and math.isfinite(cutoff_s):
            # Fewer stages mean fewer positions to tabulate.
            relaxed = with_fewer_stages(relaxed, self.objective, cutoff_s)
        if relaxed is None:
            return None
        at, most = self._useful(peak_limit_s), relaxed.most_stages
        positions = self._positions(at, most)
        parts = tuple(
            mesh_table(self.meshes[index], self.classes, positions, self.plain_s[index] <= peak_limit_s) for index in at
        )
        time_s, late_s = _stacked([part.time for part in parts], np.inf), _stacked([part.late for part in parts], 0.0)
        tables = self._assignment_tables(at, time_s, late_s, most)
        return StageTables(tables, tuple(self.meshes[index] for index in at), parts, peak_limit_s)

    def _positions(self, at: list[int], most: int) -> int:
        """Positions from the end that differ in what they hold: the last one stands for all further ones."""
        units = self.devices // self._unit(at)
        return min(most, self.num_microbatches, int(units.sum()))

    @property
    def forward_share(self) -> float:
        """No part of a stage's time that is its forward is larger."""
        return max(float(shares.max()) for shares in self.forward_shares)

    def _useful(self, peak_limit_s: float) -> list[int]:
        """Sub-meshes that hold a layer below a peak."""
        self._reach(peak_limit_s)
        return [index for index, plain_s in enumerate(self.plain_s) if (plain_s <= peak_limit_s).any()]

    def _unit(self, at: list[int]) -> int:
        """Devices that pools are counted in."""
        return math.gcd(*(self.meshes[index].devices for index in at))

    def _assignment_tables(self, at: list[int], time_s: Array, late_s: Array, most: int) -> AssignmentTables:
        meshes, unit = [self.meshes[index] for index in at], self._unit(at)
        finite = np.isfinite(time_s).any(axis=(0, 1, 2))
        fewest = self._stage_limits()[0]
        positions, shares = time_s.shape[2], np.stack([self.forward_shares[index] for index in at])
        return AssignmentTables(
            pool_units=self.devices // unit,
            option_pool=np.array([mesh.pool for mesh in meshes]),
            option_units=np.array([mesh.devices // unit for mesh in meshes]),
            time=time_s,
            late=late_s,
            span_class=self.spans[:, : int(self.layers[finite].max(initial=1))],
            hop=hop_table_s(meshes),
            fewest_stages=fewest,
            most_stages=most,
            pace_share=np.swapaxes(pace_shares(self.num_microbatches, positions, shares), 1, 2),
            pace_mix=pace_mix(self.num_microbatches, positions),
        )

    def _stage_limits(self) -> tuple[int, int]:
        """Fewest and most stages: a pinned number, or any up to one a layer."""
        if self.alike is not None:
            return self.alike.fewest_stages, self.alike.most_stages
        pinned = self.problem.pins().get("pp")
        return (int(pinned), int(pinned)) if pinned is not None else (1, self.problem.model.num_layers)


def _ideal_layer_s(problem: PoolsProblem, hardware: Hardware, devices: int, samples: int) -> float:
    """Seconds of the smallest layer at the peak rate of all devices: no policy is faster."""
    model, workload = problem.model, problem.workload
    # Frozen weights have no gradient.
    passes = 2.0 if workload.trained.adapters else 3.0
    flops = min(
        passes * sum(forward_flops(operator, workload.sequence_length) for operator in layer_operators(model, kind))
        for kind in range(len(model.layer_kinds))
    )
    peak = hardware.pool.device.peak_flops_per_s.get(workload.matmul_format, math.inf)
    return float(flops * workload.sequence_length * samples / (devices * peak))


def _stacked(parts: list[Array], fill: float) -> Array:
    """Tables of unequally many policies as one: [O, K, E, Z]."""
    most = max(len(part) for part in parts)
    return np.stack(
        [np.concatenate([part, np.full((most - len(part), *part.shape[1:]), fill)]) for part in parts], axis=0
    )
