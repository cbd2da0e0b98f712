"""The bytes of state that one parameter costs on one device.

Mixed-precision training keeps (Rajbhandari et al., arXiv 1910.02054, section 3.1; Megatron's default of fp32 main
gradients)::

    weights    2 bytes                      divided by the shards from ZeRO-3 on
    gradients  4 (fp32) or 2 (bf16)         divided from ZeRO-2 on
    optimizer  4 (fp32 master) + moments    divided from ZeRO-1 on; on the host when offloaded

Shards: ``dp_shard * cp`` ranks for dense parameters, ``edp / dp_replicate`` for experts.  Shape letter: R rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.predict.physics.physics import TUNED, Physics
from planner.question.optimizers import OPTIMIZERS
from planner.question.problem import Workload
from solver.arrays import Array, Ints, Mask

MOMENT_BYTES: dict[str, float] = {name: each.matrix_bytes for name, each in OPTIMIZERS.items()}
"""Bytes of optimizer moments a parameter of a matrix; the others' are ``planner.predict.cost.further_moments``."""
REDUCED = frozenset({"adam_bf16_states", "adam_precision_aware"})
"""Optimizers of Megatron's precision-aware one."""
MASTER_BYTES = 4.0
WEIGHT_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes a local parameter (after tp, ep and etp) on the device, for one kind of parameter: float64[R]."""

    weights: Array
    gradients: Array
    optimizer: Array
    host: Array
    passing: Array
    """On the device during a backward pass only."""

    @property
    def total(self) -> Array:
        """Bytes a parameter on the device."""
        return self.weights + self.gradients + self.optimizer + self.passing


def by_deepspeed(framework: Physics, zero: Ints, optimizer_offload: Ints) -> Mask:
    """Rows whose states DeepSpeed's ZeRO shards: [R]."""
    if framework.deepspeed_where_needed:
        needed: Mask = (zero == 1) | (optimizer_offload > 0)
        return needed
    return np.full(len(zero), framework.reduce_bucket_elements > 0.0)


def gradient_bytes(workload: Workload) -> float:
    """Bytes of one accumulated gradient value."""
    return 4.0 if workload.gradient_dtype == "fp32" else 2.0


def optimizer_bytes(workload: Workload) -> float:
    """Master weight and moments of one parameter of a matrix."""
    states = workload.optimizer_states
    if states is not None:
        return states.master_bytes + states.moment_bytes
    return MASTER_BYTES + MOMENT_BYTES[workload.optimizer]


def _kept_twice_bytes(workload: Workload) -> float:
    """Of a bf16 run's fp32 master weights, the half that the weights hold already."""
    whole = workload.optimizer_states is None or workload.optimizer_states.master == "fp32"
    return WEIGHT_BYTES if whole and workload.precision == "bf16" else 0.0


def checkpoint_bytes(workload: Workload, zero_stage: int, optimizer_offload: bool, framework: Physics) -> float:
    """Bytes of one parameter in a checkpoint that a run can go on from: weight, master weight and moments, each once.

    Where the parameters are their own fp32 masters there is no second copy: PyTorch FSDP, MaxText (``weight_dtype``
    float32, configs/base.yml:174).  Megatron-LM saves the 16-bit model and, of its distributed optimizer, ``param``
    (fp32) and moments (core/optimizer/distrib_optimizer.py:1703, 2518; d98e8a64); DeepSpeed the fp32 groups with the
    base optimizer's state and, below ZeRO-3, the 16-bit module (runtime/zero/stage_1_and_2.py:2174, stage3.py:2558;
    38327e07): the module of ZeRO-3 has emptied parameters.  Gradients are not saved.
    """
    zero, offload = np.array([zero_stage]), np.array([int(optimizer_offload)])
    emptied = by_deepspeed(framework, zero, offload) & (zero >= 3)
    once = bool((_own_masters(framework, zero, offload) | emptied)[0])
    return optimizer_bytes(workload) + (0.0 if once else WEIGHT_BYTES)


def _own_masters(framework: Physics, zero: Ints, optimizer_offload: Ints) -> Mask:
    """Rows whose sharded parameters are fp32 and their own master copy: [R]."""
    own: Mask = framework.fp32_shards & (zero >= 2) & ~by_deepspeed(framework, zero, optimizer_offload)
    return own


def state_bytes(
    workload: Workload, zero: Ints, shards: Array, optimizer_offload: Ints, framework: Physics = TUNED
) -> StateBytes:
    """State of one parameter under ``zero`` with ``shards`` ranks to split over: all [R].

    PyTorch FSDP (``fp32_shards``, from ZeRO-2 on) shards fp32 parameters, which are their own master copy, and fp32
    gradients: 16 bytes with Adam; its 16-bit parameters exist only while gathered (whole between passes in ZeRO-2).
    On the host every parameter counts as the one that keeps most.
    """
    split = np.where(zero >= 1, shards, 1.0)
    optimizer = optimizer_bytes(workload) / split
    kind = OPTIMIZERS[workload.optimizer]
    on_host = (optimizer_bytes(workload) + kind.widest_bytes - kind.matrix_bytes) / split
    remainder = framework.master_remainders & (workload.optimizer in REDUCED) & (zero == 1) & (optimizer_offload == 0)
    optimizer = optimizer - np.where(remainder, _kept_twice_bytes(workload), 0.0) / split
    fsdp = _own_masters(framework, zero, optimizer_offload)
    gradient = np.where(fsdp, MASTER_BYTES, gradient_bytes(workload))
    return StateBytes(
        weights=WEIGHT_BYTES / np.where(zero >= 3, np.where(fsdp, np.inf, shards), 1.0),
        gradients=gradient / np.where(zero >= 2, shards, 1.0),
        optimizer=np.where(optimizer_offload > 0, 0.0, optimizer),
        host=np.where(optimizer_offload > 0, on_host, 0.0),
        passing=np.zeros(len(zero)),
    )
