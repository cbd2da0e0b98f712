"""The hardware that the cost model sees: one pool of equal devices with its rates and network levels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.errors import DocumentInvalid
from planner.predict.collective import Collective, Groups, collective_s, queued_latency_s, ring_s
from planner.predict.cost.efficiency import DeviceRates, device_rates, sustained_fraction
from planner.predict.cost.expert_exchange import dispatch_s
from planner.predict.cost.measured import MeasuredCollectives, MeasuredRates, measured_collectives
from planner.predict.cost.slowest_device import slowdown
from planner.predict.distinct_parts import Routing
from planner.predict.physics.physics import TUNED, Physics
from planner.question.factors import NEUTRAL, AppliedCalibration, Factors
from planner.question.fp8_recipes import FP8_RECIPES
from planner.question.problem import Problem, Workload
from profiles.cluster import Cluster, Pool
from profiles.levels import NetworkLevel, network_levels
from profiles.prediction.profile import Profile
from profiles.prediction.reference import ProfileReference
from profiles.prediction.rungs import Prediction
from solver.arrays import Array

FRAMEWORK_BYTES = 1_200_000_000
"""Device context, library workspaces and allocator slack of an idle training process; prior from published
one-process readings (context 300-500 MB, workspaces and fused-kernel buffers the rest)."""
WORKSPACE_BYTES = 67_108_864
"""Part of ``FRAMEWORK_BYTES`` that torch's allocator counts: the matmul workspaces of PyTorch (CUDAContext's default)
and of TransformerEngine (module/base.py), 32 MiB each on Hopper."""
COMMUNICATOR_BYTES = 350_000_000
"""Buffers of one communicator: 340-390 MB a process in AIConfigurator's tables (ai-dynamo/aiconfigurator@095f58a51)."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The pool in the units of the cost model."""

    pool: Pool
    rates: DeviceRates
    levels: tuple[NetworkLevel, ...]
    num_devices: int
    memory_bytes: int
    host_link_bytes_per_s: float
    host_memory_bytes_per_device: float
    measured_links: MeasuredCollectives | None = None
    factors: Factors = NEUTRAL
    """Of a calibration: on operators, collectives, micro-batches and memory, wherever those are costed."""
    physics: Physics = TUNED
    """How the back-end runs the operators."""

    def under(self, workload: Workload) -> Hardware:
        """The same with the casts of the workload's fp8 recipe, where it names one."""
        if workload.fp8_recipe is None:
            return self
        return replace(self, rates=replace(self.rates, cast_bytes=FP8_RECIPES[workload.fp8_recipe].cast_bytes))

    def collective_s(self, op: Collective, size_bytes: Array, group_size: Array, stride: Array) -> Array:
        """Seconds of one collective: measured where the group was measured, else the (corrected) model; calibrated."""
        found = self.collective_prediction(op, size_bytes, group_size, stride)
        time_s = collective_s(op, size_bytes, group_size, stride, self.levels) if found is None else found.time_s
        return time_s if self.factors.communication == 1.0 else time_s * self.factors.communication

    def groups_collective_s(
        self, op: Collective, size_bytes: Array, groups: Groups, where: NDArray[np.bool_] | None = None
    ) -> Array:
        """``collective_s`` of an all_reduce, all_gather or reduce_scatter; ``where``: of these groups alone."""
        size = groups.size if where is None else groups.size[where]
        if self.measured_links is not None:
            return self.collective_s(op, size_bytes, size, groups.stride if where is None else groups.stride[where])
        rings = groups.rings(self.levels, op)
        time_s = ring_s(op, size_bytes, size, rings if where is None else rings.take(where))
        return time_s if self.factors.communication == 1.0 else time_s * self.factors.communication

    def collective_prediction(
        self, op: Collective, size_bytes: Array, group_size: Array, stride: Array
    ) -> Prediction | None:
        """The same with spread and rung; None without measured collectives."""
        if self.measured_links is None:
            return None
        model_s = collective_s(op, size_bytes, group_size, stride, self.levels)
        return self.measured_links.predict(
            op, np.asarray(size_bytes), np.asarray(group_size), np.asarray(stride), model_s
        )

    def expert_exchange_s(
        self,
        size_bytes: Array,
        group_size: Array,
        stride: Array,
        routing: Routing,
        once: NDArray[np.bool_] | None = None,
    ) -> Array:
        """Seconds of one exchange of routed tokens as the back-end's dispatcher sends them.

        ``size_bytes``: hidden states of a rank, once for each of a token's experts; ``once``: where they are sent once
        a node and device, whatever the back-end does by itself.  A measured all_to_all corrects the model of a
        dispatcher that sends otherwise by as much as it does that of an all_to_all.
        """
        if self.physics.dispatch == "expert" and (once is None or not once.all()):
            each_s = self.collective_s("all_to_all", size_bytes * routing.hottest(group_size), group_size, stride)
            if once is None or not once.any():
                return each_s
            return np.where(once, self._once_s(size_bytes, group_size, stride, routing), each_s)
        return self._once_s(size_bytes, group_size, stride, routing)

    def _once_s(self, size_bytes: Array, group_size: Array, stride: Array, routing: Routing) -> Array:
        """The same where tokens are sent once a node and device."""
        once_s = dispatch_s(size_bytes / routing.top_k, group_size, stride, self.levels, routing)
        if self.measured_links is not None:
            time_s = self.collective_s("all_to_all", size_bytes, group_size, stride)
            plain_s = collective_s("all_to_all", size_bytes, group_size, stride, self.levels)
            return np.where(plain_s > 0, time_s * once_s / np.maximum(plain_s, 1e-30), 0.0)
        return once_s * self.factors.communication

    def queued_latency_s(self, group_size: Array, stride: Array) -> Array:
        """Seconds that each of many collectives queued behind each other adds beside its bytes."""
        return queued_latency_s(group_size, stride, self.levels)

    @property
    def eight_bit_experts(self) -> bool:
        """Whether this run keeps inputs and copies of weights of its experts in 8 bit."""
        return self.rates.casts and self.physics.eight_bit_experts

    @property
    def eight_bit_inputs(self) -> bool:
        """Whether this run keeps inputs of its layers' dense matmuls in 8 bit."""
        return self.rates.casts and self.physics.eight_bit_inputs

    @property
    def copy_bytes(self) -> float:
        """Bytes of an element of the narrow copies that this run keeps of its layers' dense weights; 0 = none."""
        return self.rates.gathered_bytes if self.physics.eight_bit_weights else 0.0

    @property
    def expert_copy_bytes(self) -> float:
        """The same of its experts' weights."""
        return self.rates.gathered_bytes if self.physics.eight_bit_experts else 0.0

    @property
    def meeting_s(self) -> float:
        """Host seconds for each member and collective; ranks of one node meet for free."""
        return self.physics.meeting_s if self.num_devices > self.pool.devices_per_node else 0.0


def hardware_of(
    cluster: Cluster,
    precision: str,
    profile: ProfileReference | Profile | None = None,
    calibration: AppliedCalibration | None = None,
    physics: Physics = TUNED,
) -> Hardware:
    """Resolve the cluster for one precision; ``profile`` replaces datasheet predictions where it has them.

    Training plans need a single pool of equal devices; a profile and a calibration must be of that device.
    """
    if len(cluster.pools) != 1:
        raise DocumentInvalid(
            f"cluster {cluster.name} has {len(cluster.pools)} device pools; this is answered for one kind of device",
            where=f"{cluster.name}#/pools",
            hint="plan each pool by itself: keep one entry of /pools; `plans show`, `diff` and `emit` take a plan over"
            " several pools as it is",
        )
    pool = cluster.pools[0]
    levels = network_levels(pool, cluster.fabric)
    if calibration is not None:
        _calibrated_device(calibration, pool)
    slower = slowdown(pool.device, pool.num_devices) if physics.waits_for_slowest else 1.0
    rates, links = device_rates(pool.device, precision).slowed(slower), None
    if profile is not None:
        measured = profile if isinstance(profile, Profile) else _referenced(profile)
        _same_device(measured, pool)
        wide = "fp16" if precision == "fp16" else "bf16"
        rates = replace(
            rates, measured=MeasuredRates(measured, precision, wide, sustained_fraction(pool.device) / slower)
        )

        def model_s(op: Collective, size_bytes: Array, group_size: Array, stride: Array) -> Array:
            return collective_s(op, size_bytes, group_size, stride, levels)

        links = measured_collectives(measured, levels, pool.devices_per_node, model_s)
    return Hardware(
        pool=pool,
        rates=rates,
        levels=levels,
        measured_links=links,
        factors=NEUTRAL if calibration is None else calibration.factors,
        physics=physics.on(pool.device.name, pool.device.architecture),
        num_devices=pool.num_devices,
        memory_bytes=pool.device.memory_bytes,
        host_link_bytes_per_s=pool.host.link_bandwidth_bytes_per_s,
        host_memory_bytes_per_device=pool.host.memory_bytes / pool.devices_per_node,
    )


def problem_hardware(problem: Problem, physics: Physics) -> Hardware:
    """The cluster of a problem with all that the problem says about it, run by software of the given physics.

    Whether dropout is on is the workload's to say, and what the launch files will set.
    """
    return hardware_of(
        problem.cluster,
        problem.workload.matmul_format,
        problem.profile,
        problem.calibration,
        replace(physics, dropout=problem.workload.dropout),
    )


def _calibrated_device(calibration: AppliedCalibration, pool: Pool) -> None:
    if calibration.device != pool.device.name:
        raise DocumentInvalid(
            f"the calibration was fitted on {calibration.device}, the cluster has {pool.device.name}",
            where="--calibration",
            hint="factors of one device say nothing about another: calibrate with runs on it, or leave the flag out",
        )


def _referenced(reference: ProfileReference) -> Profile:
    # Reading what is stored needs pyarrow: a plan without measurements does not wait for it.
    from profiles.prediction.profile_folder import referenced_profile

    return referenced_profile(reference)


def _same_device(profile: Profile, pool: Pool) -> None:
    if profile.device and profile.device != pool.device.name:
        raise DocumentInvalid(
            f"the profile was measured on {profile.device}, the cluster has {pool.device.name}",
            where="--profile",
            hint="give a profile of the cluster's device, or none",
        )
