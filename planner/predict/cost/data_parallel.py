"""The cost of data parallelism in a step: gradient reduction, parameter gathering and the optimizer.

Once a step, after the last micro-batch (``tail_s``)::

    ZeRO-0   all_reduce of the gradients over dp * cp
    ZeRO-1   reduce_scatter of the gradients, all_gather of the 16-bit parameters
    HSDP     the sharded part as above within dp_shard, then all_reduce of the shard over dp_replicate

ZeRO-2 reduces gradients every micro-batch and ZeRO-3 also gathers parameters twice a micro-batch: that part belongs
to the micro-batch time of layers and ends (``microbatch_s``).  Reduction hides under the last backward pass, gathering
under the next first forward pass; both windows are the compute of a mean stage without recompute, dealt to dense and
expert parameters, so that the result depends on a stage's parameters only and never falls when they grow (the search's
bounds rely on it).  A step waits for the stage with the most dense parameters and for the one with the most expert
parameters.

Sizes and groups are those of ``planner.predict.cost.step_payload``.

A back-end may reduce in small buckets and gather weight by weight; each such collective adds its launch and the
passage between the nodes of its ring: ``collectives * (launches + (nodes - 1) latency)``, twice for an all_reduce.

The optimizer reads and writes its states once: ``bytes / memory bandwidth``; offloaded, gradients and parameters
cross the host link and the host's memory does the work.  What it moves and computes beyond that is data
(``planner.question.optimizers``, ``planner.predict.cost.newton_schulz``).  Shape letter: R rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from planner.predict.cost.hardware import Hardware
from planner.predict.cost.overlap import exposed_s
from planner.predict.cost.step_payload import (
    DataParallelism,
    GatheredUnit,
    StepExchange,
    gathers_per_microbatch,
    microbatch_exchanges,
    reduction_buckets,
    reference_exchange,
    step_exchanges,
)
from planner.predict.memory.states import WEIGHT_BYTES, gradient_bytes, optimizer_bytes
from planner.question.optimizers import OPTIMIZERS
from planner.question.problem import Workload
from solver.arrays import Array

LAST_BUCKET_FRACTION = 0.05
"""Part of the gradient reduction after the last backward operator: one of about twenty buckets."""
HOST_OPTIMIZER_BYTES_PER_S = 20e9
"""Rate at which a device's share of the host updates Adam states; prior for a two-socket server over 8 devices."""


@dataclass(frozen=True, slots=True)
class TailCost:
    """The columns of ``planner.predict.cost.row_cost.RowCost`` that the end of the step depends on."""

    table_reduce_s: Array
    dense_parallel: DataParallelism
    expert_parallel: DataParallelism
    forward_window_s: Array
    backward_window_s: Array
    dense_window_share: Array

    @classmethod
    def of(cls, cost: Any) -> TailCost:
        """Those of some rows."""
        return cls(*(getattr(cost, column.name) for column in fields(cls)))


def tail_s(
    parameters: Array,
    parallel: DataParallelism,
    workload: Workload,
    hardware: Hardware,
    forward_window_s: Array,
    backward_window_s: Array,
) -> tuple[Array, Array]:
    """Exposed communication and optimizer seconds of ``parameters`` local parameters, once a step: two [R]."""
    reduce_s, gather_s = _once_a_step_s(parameters, parallel, workload, hardware)
    hidden_reduce_s = exposed_s(reduce_s, backward_window_s, LAST_BUCKET_FRACTION)
    shown_reduce_s = np.where(parallel.overlap_grad > 0, hidden_reduce_s, reduce_s)
    shown_gather_s = np.where(parallel.overlap_param > 0, exposed_s(gather_s, forward_window_s), gather_s)
    return shown_reduce_s + shown_gather_s, optimizer_s(parameters, parallel, workload, hardware)


def optimizer_s(parameters: Array, parallel: DataParallelism, workload: Workload, hardware: Hardware) -> Array:
    """Seconds of the optimizer step: states read and written, gradient read, weight written."""
    local = parameters / np.where(parallel.zero >= 1, parallel.shards, 1.0)
    on_device_s, on_host_s = optimizer_places_s(local, workload, hardware)
    seconds = np.where(parallel.optimizer_offload > 0, on_host_s, on_device_s)
    return seconds if parallel.orthogonalization is None else seconds + _orthogonalization_s(parameters, parallel)


def _orthogonalization_s(parameters: Array, parallel: DataParallelism) -> Array:
    """Seconds of a rank's share of the matrices, which it takes whole: all of them without sharded states."""
    table = parallel.orthogonalization
    if table is None:
        return np.zeros(np.shape(parameters))
    shared = parallel.zero >= 1
    share_s = parameters * table.per_parameter_s / np.where(shared, parallel.shards, 1.0)
    return np.where(
        shared, np.maximum(share_s, np.minimum(table.longest_s, parameters * table.per_parameter_s)), share_s
    )


def optimizer_places_s(local: Array, workload: Workload, hardware: Hardware) -> tuple[Array, Array]:
    """Seconds to update ``local`` parameters on the device and, offloaded, on the host."""
    state, gradient = optimizer_bytes(workload), gradient_bytes(workload)
    further = OPTIMIZERS[workload.optimizer].further_bytes
    moved_bytes = local * (2.0 * state + gradient + WEIGHT_BYTES + further)
    on_device_s = moved_bytes / hardware.rates.memory_bytes_per_s * hardware.factors.compute
    crossing_s = local * max(gradient, WEIGHT_BYTES) / hardware.host_link_bytes_per_s
    return on_device_s, crossing_s + local * (2.0 * state + further) / HOST_OPTIMIZER_BYTES_PER_S


def with_traffic(
    units: Sequence[GatheredUnit],
    workload: Workload,
    hardware: Hardware,
    forward_s: Array,
    backward_s: Array,
    busy_s: Array | float = 0.0,
) -> tuple[Array, Array]:
    """Forward and backward of one layer or end with the ZeRO-2/3 traffic of its parameters: two [R].

    ``busy_s``: seconds of each in which another exchange holds the link.
    """
    if not np.any(units[0].parallel.zero >= 2):
        return forward_s, backward_s
    used = [unit for unit in units if np.any(unit.parameters) or np.any(unit.frozen_bytes)] or units[:1]
    extra_f, extra_b = microbatch_s(used, workload, hardware, forward_s - busy_s, backward_s - busy_s)
    return forward_s + extra_f, backward_s + extra_b


def microbatch_s(
    units: Sequence[GatheredUnit],
    workload: Workload,
    hardware: Hardware,
    forward_s: Array,
    backward_s: Array,
) -> tuple[Array, Array]:
    """Exposed ZeRO-2/3 traffic of one layer (or end) and micro-batch, forward and backward: two [R].

    ``units``: its dense and its expert parameters; their traffic hides together under ``forward_s`` and ``backward_s``.
    """
    zero = units[0].parallel.zero
    gathers = gathers_per_microbatch(units[0].parallel, hardware.physics)
    gather_s, scatter_s, reference_s = np.zeros((3, len(zero)))
    for unit in units:
        gather, scatter, whole = microbatch_exchanges(unit, workload, hardware.physics)
        gather_s = gather_s + _exchange_s(gather, hardware)
        reference_s = reference_s + _exchange_s(reference_exchange(unit, hardware.physics), hardware)
        scatter_s = scatter_s + _exchange_s(scatter, hardware) + _exchange_s(whole, hardware)
    forward = np.where(gathers > 0.0, exposed_s(gather_s + reference_s, forward_s), 0.0)
    again_s = np.where(gathers > 1.0, gather_s, 0.0)
    return forward, np.where(zero >= 2, exposed_s(again_s + scatter_s, backward_s), 0.0)


def gathered_once_s(parameters: Array, parallel: DataParallelism, hardware: Hardware) -> Array:
    """Seconds to gather ``parameters`` local 16-bit parameters once, where states are sharded: [R]."""
    size_bytes, sharded = parameters * WEIGHT_BYTES, parallel.zero >= 1
    return _exchange_s(StepExchange("all_gather", sharded, size_bytes, parallel.replica), hardware)


def _once_a_step_s(
    parameters: Array, parallel: DataParallelism, workload: Workload, hardware: Hardware
) -> tuple[Array, Array]:
    everyone, scatter, gather, across = step_exchanges(
        parameters, parallel, workload, hardware.physics, hardware.pool.device.architecture
    )
    reduce_s = _exchange_s(everyone, hardware) + _exchange_s(scatter, hardware) + _exchange_s(across, hardware)
    gather_s = _exchange_s(gather, hardware)
    if not (hardware.physics.reduction_bucket_bytes or hardware.physics.gather_by_tensor):
        return reduce_s, gather_s
    calls_reduce_s, calls_gather_s = _calls_s(parameters, parallel, hardware)
    return reduce_s + calls_reduce_s, gather_s + calls_gather_s


def _calls_s(parameters: Array, parallel: DataParallelism, hardware: Hardware) -> tuple[Array, Array]:
    """What many small collectives add to reduction and gathering beside their bytes.

    A bucket is closed by the weight that fills it: on average it holds its size and one weight more.  Ranks that meet
    on the host before collectives do so for an all_reduce; the coalesced calls of ZeRO-1 go unchecked.
    """
    traits, zero = hardware.physics, parallel.zero
    passage_s = hardware.queued_latency_s(parallel.ranks, parallel.stride)
    call_s, several = traits.reduction_launches * traits.launch_s, parallel.ranks > 1
    reduce_s = gather_s = np.zeros(np.shape(parameters))
    if traits.reduction_bucket_bytes:
        buckets = reduction_buckets(parameters, parallel, traits)
        ring_s = np.where(zero == 0, 2.0 * passage_s + hardware.meeting_s * parallel.ranks, passage_s)
        reduce_s = np.where(several, buckets * (call_s + ring_s), 0.0)
    if traits.gather_by_tensor:
        tensors = parameters * parallel.tensors_per_parameter
        gather_s = np.where(several & (zero >= 1) & (zero <= 2), tensors * (call_s + passage_s), 0.0)
    return reduce_s, gather_s


def _exchange_s(exchange: StepExchange, hardware: Hardware) -> Array:
    """Seconds of one collective on the rows where it happens (others 0).

    Only those rows are computed: most batches mix ZeRO levels, and each level needs its own collectives.
    """
    where, size_bytes, groups = exchange.happens, exchange.size_bytes, exchange.groups
    if where.all():
        return hardware.groups_collective_s(exchange.operation, size_bytes, groups)
    seconds = np.zeros(np.shape(size_bytes))
    if where.any():
        seconds[where] = hardware.groups_collective_s(exchange.operation, size_bytes[where], groups, where)
    return seconds
