"""The bytes that data parallelism and the pipeline send, and over which ranks.

One place for what is sent: ``planner.predict.cost.data_parallel`` and ``planner.predict.cost.row_cost`` turn it into
seconds, ``planner.plan.communication_bill`` adds it up.  Sizes follow ``planner.predict.collective``.

Once a step and kind of parameter: ZeRO-0 all_reduces the gradients over all ranks, ZeRO-1 reduce_scatters them over
the shards, ZeRO-1 and 2 all_gather the 16-bit weights there, and HSDP all_reduces the shard of the gradients over the
replicas.  Once a micro-batch: ZeRO-2 and 3 reduce_scatter, and ZeRO-3 all_gathers before each of the two passes; a
back-end may gather ZeRO-2's weights before each forward pass instead of once a step (``regathers_zero2``).
Shape letter: R rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from planner.predict.collective import Collective, Groups
from planner.predict.memory.states import WEIGHT_BYTES, by_deepspeed, gradient_bytes
from planner.predict.physics.physics import Physics
from planner.question.fp8_recipes import usual_recipe
from planner.question.optimizers import OPTIMIZERS
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints, Mask

EIGHT_BIT_GATHERS = frozenset({"delayed", "tensorwise", "blockwise"})
"""Recipes under which 8-bit weights are gathered as they are stored (megatron-core 0.19.2
core/distributed/param_and_grad_buffer.py:1244-1253: MXFP8's go through the gradient buffer)."""
GATHERS_PER_MICROBATCH = 2.0
"""ZeRO-3 drops the weights after the forward pass and gathers them again for the backward pass."""


@dataclass(frozen=True, slots=True)
class Orthogonalization:
    """Seconds in which an optimizer orthogonalizes matrices: [R] each (``planner.predict.cost.newton_schulz``)."""

    per_parameter_s: Array
    """Of a local parameter, on average."""
    longest_s: Array
    """Of the longest matrix, which one rank takes whole."""


@dataclass(frozen=True)
class DataParallelism:
    """How a kind of parameter (dense or expert) is replicated: columns [R]."""

    ranks: Array
    replicate: Array
    stride: Array
    zero: Ints
    overlap_grad: Ints
    overlap_param: Ints
    optimizer_offload: Ints
    eight_bit: Array
    """Part of the parameters that are stored in 8 bit; the others, and all without ``fp8_parameters``, in 16."""
    tensors_per_parameter: Array
    """Weight tensors over local parameters, for frameworks that run a collective for each."""
    orthogonalization: Orthogonalization | None = None
    """What the update of matrices takes beside moving them; None = nothing."""

    @cached_property
    def shards(self) -> Array:
        """Ranks that the states are split over."""
        return np.maximum(self.ranks / self.replicate, 1.0)

    @cached_property
    def everyone(self) -> Groups:
        """All ranks."""
        return Groups(self.ranks, self.stride)

    @cached_property
    def replica(self) -> Groups:
        """The shards of one replica."""
        return Groups(self.shards, self.stride)

    @cached_property
    def replicas(self) -> Groups:
        """The ranks that hold the same shard."""
        return Groups(self.replicate, self.stride * self.shards)


def parallelisms(
    rows: StrategyRows, tensors_per_parameter: Array, of_layers: Array
) -> tuple[DataParallelism, DataParallelism]:
    """Who shares the dense and the expert parameters; ``of_layers``: the part of dense ones that layers have."""
    replicate = rows.dp_replicate.astype(float)
    inner = rows.tp * np.where(rows.pp_inner > 0, rows.cp * rows.pp, 1)
    columns: dict[str, Any] = {
        "zero": rows.zero,
        "overlap_grad": rows.overlap_grad,
        "overlap_param": rows.overlap_param,
        "optimizer_offload": rows.optimizer_offload,
    }
    dense = DataParallelism(
        ranks=(rows.dp * rows.cp).astype(float), replicate=replicate, stride=inner.astype(float),
        tensors_per_parameter=tensors_per_parameter, eight_bit=of_layers * rows.fp8_parameters, **columns,
    )  # fmt: skip
    expert_ranks = rows.tp * rows.cp * rows.dp // (rows.etp * rows.ep)
    expert = DataParallelism(
        ranks=expert_ranks.astype(float),
        replicate=np.minimum(replicate, expert_ranks),
        stride=(rows.etp * rows.ep * np.where(rows.pp_inner > 0, rows.pp, 1)).astype(float),
        tensors_per_parameter=tensors_per_parameter,
        eight_bit=rows.fp8_parameters.astype(float),
        **columns,
    )
    return dense, expert


@dataclass(frozen=True, slots=True)
class StepExchange:
    """One collective over data-parallel ranks, on the rows where it happens: [R]."""

    operation: Collective
    happens: Mask
    size_bytes: Array
    groups: Groups
    across_replicas: bool = False
    """Whether the ranks are replicas of a shard (or, without shards, all of them) and not the shards of a replica."""


def gathers_per_microbatch(parallel: DataParallelism, framework: Physics) -> Array:
    """How often a micro-batch gathers its weights: before each pass (ZeRO-3), or before its forward pass: [R]."""
    zero = parallel.zero
    dropped = framework.regathers_zero2 & ~by_deepspeed(framework, zero, parallel.optimizer_offload)
    forward = np.where((zero == 2) & dropped, 1.0, 0.0)
    return np.where(zero >= 3, GATHERS_PER_MICROBATCH, forward)


def step_exchanges(
    parameters: Array, parallel: DataParallelism, workload: Workload, framework: Physics, architecture: str
) -> tuple[StepExchange, StepExchange, StepExchange, StepExchange]:
    """Once a step: all_reduce of everything, reduce_scatter, all_gather, all_reduce of the shards.

    ``architecture``: of the devices, which decides the fp8 recipe where nobody says one.
    A back-end may all_reduce where ZeRO-1 could reduce_scatter (``zero_all_reduces``).
    """
    scatter: Collective = "all_reduce" if framework.zero_all_reduces else "reduce_scatter"
    gradient, zero = parameters * gradient_bytes(workload), parallel.zero
    shards, often = parallel.shards, gathers_per_microbatch(parallel, framework)
    replicated = (zero >= 1) & (parallel.replicate > 1)
    narrow = (workload.fp8_recipe or usual_recipe(architecture)) in EIGHT_BIT_GATHERS
    gathered = WEIGHT_BYTES - (WEIGHT_BYTES - 1.0) * parallel.eight_bit * narrow
    return (
        StepExchange("all_reduce", zero == 0, gradient, parallel.everyone, across_replicas=True),
        StepExchange(scatter, zero == 1, gradient, parallel.replica),
        StepExchange("all_gather", (zero >= 1) & (often == 0.0), parameters * gathered, parallel.replica),
        StepExchange("all_reduce", replicated, gradient / shards, parallel.replicas, across_replicas=True),
    )


@dataclass(frozen=True, slots=True)
class GatheredUnit:
    """What is gathered and reduced of one layer or end, of one kind of parameter: [R] each.

    ``frozen_bytes``: of weights that do not learn, gathered before each pass; ``reference_bytes``: of a reference
    model, gathered before its forward pass.
    """

    parameters: Array
    parallel: DataParallelism
    frozen_bytes: Array | float = 0.0
    reference_bytes: Array | float = 0.0


def reference_exchange(unit: GatheredUnit, framework: Physics) -> StepExchange:
    """The gather before the reference model's forward pass, where states are gathered at all."""
    often = gathers_per_microbatch(unit.parallel, framework)
    size_bytes = np.broadcast_to(np.asarray(unit.reference_bytes, dtype=float), np.shape(unit.parameters))
    return StepExchange("all_gather", (often > 0.0) & (size_bytes > 0.0), size_bytes, unit.parallel.replica)


def microbatch_exchanges(
    unit: GatheredUnit, workload: Workload, framework: Physics
) -> tuple[StepExchange, StepExchange, StepExchange]:
    """Of one layer (or end) and micro-batch: the gather before a pass, what reduces gradients after the backward pass.

    That is a scatter, or an all_reduce where ZeRO-2 has no scatter (``zero_all_reduces``).
    """
    parameters, parallel = unit.parameters, unit.parallel
    zero, replica = parallel.zero, parallel.replica
    # DeepSpeed's Muon needs whole gradients in ZeRO-3 too (0.19.8 runtime/zero/stage3.py:360).
    last = 3 if OPTIMIZERS[workload.optimizer].orthogonalizes else 2
    often = gathers_per_microbatch(parallel, framework)
    whole = (zero >= 2) & (zero <= last) & framework.zero_all_reduces
    if framework.deepspeed_where_needed:
        whole = whole & by_deepspeed(framework, zero, parallel.optimizer_offload)
    gradients, gathered = parameters * gradient_bytes(workload), parameters * WEIGHT_BYTES + unit.frozen_bytes
    return (
        StepExchange("all_gather", often > 0.0, gathered, replica),
        StepExchange("reduce_scatter", (zero >= 2) & ~whole, gradients, replica),
        StepExchange("all_reduce", whole, gradients, replica),
    )


def reduction_buckets(parameters: Array, parallel: DataParallelism, framework: Physics) -> Array:
    """Buckets of a back-end that reduces in small ones: a bucket is closed by the weight that fills it: [R]."""
    tensor_bytes = WEIGHT_BYTES / np.maximum(parallel.tensors_per_parameter, 1e-30)
    buckets: Array = parameters * WEIGHT_BYTES / (framework.reduction_bucket_bytes + tensor_bytes)
    return buckets


def table_bytes(copied: Array, zero: Ints, dense: DataParallelism, workload: Workload) -> Array:
    """Gradients of the second copy of the token table, which first and last stage sum once a step: [R]."""
    sizes: Array = copied * gradient_bytes(workload) / np.where(zero >= 2, dense.shards, 1.0)
    return sizes


def hop_parts(rows: StrategyRows, framework: Physics) -> Array:
    """Parts in which a hidden state leaves a stage, one a tensor-parallel rank; more than one is gathered: [R]."""
    if not framework.scattered_hops:
        return np.ones(len(rows))
    return np.where(rows.sp > 0, 1.0, rows.tp)
