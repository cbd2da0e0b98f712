"""How does a training framework run what the model lists?  Facts of software that change time or memory.

The operators of a model say what has to be computed; a framework decides how many kernels that takes, which of them
are fused, how fast its host code launches them, what its collectives cost beside their bytes, and what its allocator
and optimizer keep.  The neutral traits are those of a tuned Megatron-Core run: fused kernels, a host that is never
late.  ``planner.framework.known`` holds the traits of the frameworks whose runs were studied.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrameworkTraits:
    """What one framework adds to operators, collectives and memory; the defaults add nothing."""

    name: str = "tuned"
    launch_s: float = 0.0
    """Host seconds to launch one kernel, Python around it included; 0 = the host is never late (CUDA graphs)."""
    eager_pointwise: bool = False
    """Whether norms, activations, rope and residual sums run as several kernels each, straight from PyTorch's eager
    operators."""
    collective_launches: float = 3.0
    """Launches that one tensor-parallel collective costs the host: the collective, its stream waits, its buffers."""
    parameter_hooks: float = 0.0
    """Further launches in the backward pass for each weight: accumulation of its gradient into an fp32 buffer."""
    fused_attention: bool = True
    """Whether attention runs as one fused kernel; without it the s x s scores are written, read and kept."""
    dropout: bool = False
    """Whether dropout is on (after both branches of a layer, and on attention scores), whose masks are kept."""
    attention_output_copies: float = 0.0
    """Further copies of the attention output that are kept: flash kernels want batch-first tensors, Megatron's are
    sequence-first, so the kernel keeps its output and the projection a transposed copy."""
    operator_checkpointing: bool = False
    """Whether selective recompute is PyTorch's by operator: outputs of every second matmul and of attention stay."""
    kept_logit_bytes: float = 4.0
    """Bytes a logit kept for the loss's backward pass: an fp32 softmax."""
    passing_logit_bytes: float = 2.0
    """Bytes a logit beside the kept ones while the loss runs: the 16-bit logits, or their 16-bit gradient."""
    fp32_shards: bool = False
    """Whether sharded parameters and gradients are fp32 (PyTorch FSDP): the parameter is its own master."""
    reserved_per_allocated: float = 1.0
    """Memory that the caching allocator holds for each byte in use at the peak."""


TUNED = FrameworkTraits()
