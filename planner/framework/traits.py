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
    summary: str = "a tuned Megatron-Core run"
    launch_s: float = 0.0
    """Host seconds to launch one kernel, Python around it included; 0 = the host is never late (CUDA graphs)."""
    eager_pointwise: bool = False
    """Whether norms, activations, rope and residual sums run as several kernels each, straight from PyTorch's eager
    operators."""
    collective_launches: float = 3.0
    """Launches that one tensor-parallel collective costs the host: the collective, its stream waits, its buffers."""
    parameter_hooks: float = 0.0
    """Further launches in the backward pass for each weight: accumulation of its gradient into an fp32 buffer."""
    bucket_bytes: float = 0.0
    """Bytes a parameter of 16-bit reduction buckets that live beside the accumulated gradients, where several ranks
    reduce whole gradients (ZeRO-0 and ZeRO-1)."""
    passing_gradient_bytes: float = 0.0
    """Bytes a parameter of 16-bit gradients that a backward pass leaves behind and the accumulation then frees."""
    kept_fragmentation: float = 1.0
    """Memory that the allocator's pool needs for each byte of kept activations."""
    keeps_gate_output: bool = False
    """Whether a gated non-linearity is two kernels, so that its first one's output is kept beside gate and up."""
    collective_buffers: int = 0
    """Buffers for a whole micro-batch's hidden states that tensor-parallel collectives hold for ever."""
    whole_sequence_tensors: float = 0.0
    """Tensors of a whole micro-batch's hidden states alive at once inside a layer's passes: what a collective is about
    to scatter or has just gathered, and what its side stream has not released yet."""
    backward_working_share: float = 0.0
    """Gradients alive at once while a layer runs backward, as a part of what the layer keeps."""
    step_copies: bool = False
    """Whether ZeRO-1's optimizer step gathers the 16-bit weights through flat copies of shard and whole."""
    further_communicators: int = 0
    """Communicators beside one for every parallel axis, where there is more than one device."""
    memory_spread: float = 0.03
    """Standard deviation of measured over predicted memory; a run is said to fit with twice that to spare."""


TUNED = FrameworkTraits()
