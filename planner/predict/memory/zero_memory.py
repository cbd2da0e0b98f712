"""The memory that DeepSpeed's ZeRO holds beside weights, gradients and optimizer states.

With ``B`` elements a bucket (``reduce_bucket_size``), ``g`` bytes an accumulated gradient, ``o`` = 2 with overlapping
reduction and 1 without, ``n`` local parameters, ``t`` elements of the largest tensor and ``c = min(n, max(B, t))``
elements of a full bucket::

    ZeRO-1   o B g                  one or two staging buffers, whatever the size of the model
             + c g                  flat copy for the all_reduce, beside activations only where it overlaps
    ZeRO-2   o B 2 + c (2 + x)      staging in 16 bit, flat copy, and ``x`` = 4 for its fp32 twin where g = 4
    ZeRO-3   B g + c g              one buffer for the whole run, flat copy for the reduce_scatter
             + 2 l                  gathered parameters, ``l`` of them at once (``live_elements``)

ZeRO-1 under the BF16 optimizer (bf16 weights, fp32 gradients, on the device) has no bucket, but keeps 16-bit gradients
beside the fp32 ones.  Plain data parallelism makes fp32 copies of its gradients at the step, 4 bytes a parameter, at a
moment without activations.

Sources, deepspeed 0.19.8, runtime/: zero/stage_1_and_2.py:3256-3281 (setup_buckets, in every backward pass), :1253
(dtype), :2359-2392 (allreduce_bucket), :2283-2295 (when); zero/stage3.py:780-784, comm/coalesced_collectives.py:122;
zero/partitioned_param_coordinator.py:452-465 (prefetch), 653-664 (what a forward pass leaves gathered);
bf16_optimizer.py:500-533; fp16/unfused_optimizer.py:217-236.  All but offload is counted on DeepSpeed itself by
tests/oracle/test_zero_memory_against_deepspeed.py.  Shape letter: R rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.predict.memory.states import WEIGHT_BYTES, StateBytes, by_deepspeed, gradient_bytes
from planner.predict.physics.physics import Physics
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Mask

LOW_GRADIENT_BYTES = 2.0
STEP_GRADIENT_BYTES = 4.0
"""fp32 copies of 16-bit gradients, whole."""

STACKED_PART = 2.0 / 3.0
"""Of a layer's experts, what one tensor holds: gate and up of all of them (transformers 5.23.0, models/mixtral/
modeling_mixtral.py, gate_up_proj)."""


def keeps_both_gradients(rows: StrategyRows, workload: Workload) -> Mask:
    """Rows that run DeepSpeed's BF16 optimizer (runtime/engine.py:2305-2310): [R]."""
    wanted = workload.precision in ("bf16", "fp8") and workload.gradient_dtype == "fp32"
    runs: Mask = (rows.zero == 1) & (rows.optimizer_offload == 0) & wanted
    return runs


def zero_states(
    traits: Physics, state: StateBytes, rows: StrategyRows, workload: Workload, kept_per_parameter: Array
) -> StateBytes:
    """State of a parameter with what DeepSpeed keeps beside it: [R].

    From ZeRO-2 on gradients follow an offloaded optimizer to the host (stage_1_and_2.py:2100-2180, stage3.py:791).
    ``kept_per_parameter``: activations that are gone when plain data parallelism copies its gradients.
    """
    here = by_deepspeed(traits, rows.zero, rows.optimizer_offload)
    moved = np.where(here & (rows.zero >= 2) & (rows.optimizer_offload > 0), state.gradients, 0.0)
    both = np.where(here & keeps_both_gradients(rows, workload), LOW_GRADIENT_BYTES, 0.0)
    step = np.where(here & (rows.zero == 0), np.maximum(STEP_GRADIENT_BYTES - kept_per_parameter, 0.0), 0.0)
    return replace(
        state,
        gradients=state.gradients - moved + both,
        host=state.host + moved,
        passing=state.passing + step,
    )


def working_copy_bytes(
    traits: Physics, rows: StrategyRows, workload: Workload, local: Array, sizes: tuple[Array, Array, Array]
) -> Array:
    """Parameters of ZeRO-3 that are whole at once, gradients of one unit (from ZeRO-2 on), and buckets: [R].

    ``local``: parameters of this rank; ``sizes``: those of the largest layer, of the experts of one, of the larger end.
    """
    layer, experts, end = sizes
    unit = np.maximum(layer, end)
    gathered = np.where(rows.zero >= 3, 2.0 * WEIGHT_BYTES * unit, 0.0)
    held: Array = gathered + np.where(rows.zero >= 2, gradient_bytes(workload) * unit, 0.0)
    if traits.reduce_bucket_elements == 0.0:
        return held
    tensor = np.maximum(end, STACKED_PART * experts)
    of_deepspeed = _in_buckets(traits, rows, workload, local, unit, tensor)
    return np.where(by_deepspeed(traits, rows.zero, rows.optimizer_offload), of_deepspeed, held)


def _in_buckets(
    traits: Physics, rows: StrategyRows, workload: Workload, local: Array, unit: Array, tensor: Array
) -> Array:
    """``working_copy_bytes`` of DeepSpeed; ``tensor``: parameters of the largest tensor, which is reduced whole: [R].

    Every module of a layer prefetches, so ZeRO-3 gathers ahead until ``live_elements`` parameters are whole.  Without
    prefetch a forward pass leaves the last half of that many for the backward pass, because no module is released that
    is used again so soon; they are gone when a bucket is full.
    """
    bucket, gradient, low = traits.reduce_bucket_elements, gradient_bytes(workload), LOW_GRADIENT_BYTES
    content = np.minimum(local, np.maximum(bucket, tensor))
    wide = gradient if gradient > LOW_GRADIENT_BYTES else 0.0
    staged, overlaps = bucket * (1.0 + (rows.overlap_grad > 0)), rows.overlap_grad > 0
    first = np.where(keeps_both_gradients(rows, workload), 0.0, (staged + np.where(overlaps, content, 0.0)) * gradient)
    second = staged * LOW_GRADIENT_BYTES + content * (LOW_GRADIENT_BYTES + wide) + low * unit
    passed = np.minimum(local, np.where(rows.overlap_param > 0, np.maximum(traits.live_elements, unit), unit))
    left = np.minimum(local, traits.live_elements / 2.0 + unit)
    reducing = WEIGHT_BYTES * passed + content * gradient + low * unit
    third = bucket * gradient + np.maximum(reducing, WEIGHT_BYTES * left)
    held: Array = np.select(
        [rows.zero == 0, rows.zero == 1, rows.zero == 2], [np.zeros_like(unit), first, second], third
    )
    return held
