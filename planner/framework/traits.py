"""How does a training framework run what the model lists?  Facts of software that change time or memory.

The operators of a model say what has to be computed; a framework decides how many kernels that takes, which of them
are fused, how fast its host code launches them, what its collectives cost beside their bytes, and what its allocator
and optimizer keep.  The neutral traits are those of a tuned Megatron-Core run: fused kernels, a host that is never
late.  ``planner.framework.known`` holds the traits of the frameworks whose runs were studied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttentionChoice = Literal["best", "flash2", "triton", "unfused"]
"""best: the fastest published kernel of the device; flash2: FlashAttention-2 on any device; triton: the first
FlashAttention in Triton; unfused: batched matmuls around a softmax kernel."""


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
    bucket_bytes_per_parameter: float = 0.0
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
    accumulation_bytes: float = 0.0
    """Bytes moved for each local parameter and micro-batch to add a gradient to its accumulator; 0 = the weight
    gradient's matmul adds it (gradient accumulation fusion)."""
    meeting_s: float = 0.0
    """Host seconds for each member of a tensor-parallel group and each of its collectives, in jobs of several nodes:
    ranks meet on the host before the collective starts, and one of them answers the others in turn."""
    transfer_stall_s: float = 0.0
    """Host seconds that each transfer between stages of different nodes blocks both of them."""
    reduction_bucket_bytes: float = 0.0
    """16-bit gradients that close a bucket, which one collective reduces; 0 = buckets so large that their number does
    not matter."""
    gather_by_tensor: bool = False
    """Whether ZeRO-1 gathers each weight by a collective of its own."""
    reduction_launches: float = 0.0
    """Launches that one such collective costs the host: splitting, copies, the call itself."""
    separate_reductions: bool = False
    """Whether gradients of biases and norms are reduced, and those of residual branches added, by kernels of their own
    that read the tensors once more (before TransformerEngine)."""
    collective_skew_s: float = 0.0
    """Spread of the moments at which the ranks of a tensor-parallel group reach one collective, each behind its own
    host; the slowest of n ranks is late by sqrt(2 ln n) spreads."""
    call_s: float = 0.0
    """Host seconds of Python around each operator (and collective) of a forward pass: module calls, views, checks.  A
    backward pass is run by autograd's C++ engine, without them."""
    scattered_hops: bool = False
    """Whether a hidden state that all tensor-parallel ranks hold whole goes to the next stage in parts, a part a rank,
    and is gathered there (arXiv 2104.04473, section 4.1); under sequence parallelism nothing is held whole."""
    pads_vocabulary: bool = True
    """Whether a vocabulary whose shard is not a multiple of eight is padded to one where tensor parallelism does not
    force it to be; if not, its matmuls load element by element."""
    attention: AttentionChoice = "best"
    """Which attention kernel runs."""
    dispatch: Literal["expert", "node"] = "expert"
    """Whether a routed token is sent once for each of its experts, or once to a node and device that hold several."""
    frozen_weights: bool = False
    """Whether only small adapters learn (LoRA): no weight gradients, no gradient traffic, no optimizer of the model."""
    unfused: frozenset[str] = frozenset()
    """Operator classes that run as several passes over memory instead of one fused kernel (``cost.pointwise``)."""
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


TUNED = FrameworkTraits()
