"""Kernel traits of a back-end: fused or several passes over memory, and which attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttentionChoice = Literal["best", "flash2", "triton", "unfused"]
"""best: the fastest published kernel of the device; flash2: FlashAttention-2 on any device; triton: the first
FlashAttention in Triton; unfused: batched matmuls around a softmax kernel."""
NEVER_FUSED = frozenset({"volta"})
"""Device generations for which no FlashAttention was published: best is unfused there."""


def attention_on(choice: AttentionChoice, architecture: str) -> AttentionChoice:
    """The attention kernel that a choice means on one device generation."""
    return "unfused" if choice == "best" and architecture in NEVER_FUSED else choice


@dataclass(frozen=True, kw_only=True)
class KernelTraits:
    """Kernels behind the operators of a model; the defaults are fused."""

    attention: AttentionChoice = "best"
    """Which attention kernel runs."""
    unfused: frozenset[str] = frozenset()
    """Operator classes that run as several passes over memory instead of one fused kernel (``cost.pointwise``)."""
    eager_pointwise: bool = False
    """Whether norms, activations, rope and residual sums run as several kernels each, straight from PyTorch's eager
    operators."""
    wide_loss: bool = False
    """Whether the loss over a split vocabulary turns logits to fp32 and passes over them between its collectives
    (Megatron-Core's own fused form), instead of one kernel that reads and writes 16 bit (TransformerEngine's)."""
    log_probability_loss: bool = False
    """Whether the loss is of log-probabilities and entropies in fp32, which eager operators make chunk by chunk of the
    vocabulary (trainers of reinforcement learning); the backward pass multiplies the logits once more."""
    eager_expert_bias: bool = False
    """Whether experts' output bias times the router's fp32 probability is added by PyTorch's own operators, expert by
    expert (``planner.predict.cost.operator_time.EXPERT_BIAS_BYTES``)."""
    eager_expert_weights: bool = False
    """Whether the router's fp32 probabilities multiply the output of experts' non-linearity by PyTorch's own operators
    where it is not gated (``planner.predict.cost.operator_time.WEIGHTED_PASSES``); gated ones are fused with it."""
    sequence_first_scans: bool = False
    """Whether a recurrence's inputs and output are transposed by copies where a micro-batch has several samples: layers
    are sequence-first, its kernels batch-first."""
    separate_reductions: bool = False
    """Whether gradients of biases and norms are reduced, and those of residual branches added, by kernels of their own
    that read the tensors once more (before TransformerEngine)."""
    accumulation_bytes: float = 0.0
    """Bytes moved for each local parameter and micro-batch to add a gradient to its accumulator; 0 = the weight
    gradient's matmul adds it (gradient accumulation fusion)."""
    splits_backward: bool = True
    """Whether the schedules that want it run weight gradients apart from input gradients; if not, inside them."""
    pads_vocabulary: bool = True
    """Whether a vocabulary whose shard is not a multiple of eight is padded to one where tensor parallelism does not
    force it to be; if not, its matmuls load element by element."""
    newton_schulz: Literal["standard", "gram"] = "standard"
    """How Muon iterates (``planner.predict.cost.newton_schulz``): on the matrix, or on its product with itself."""
    dynamic_casts: bool = False
    """Whether 8-bit matmuls scale by the present largest value of each operand, found by a pass of its own, cast
    weights in every pass, and copy 8-bit operands that a product wants transposed (torchao, float8/float8_linear.py:
    casts of input and weight forward, of the gradient backward, the weight's again under FSDP; torch._scaled_mm takes
    a row-major and a column-major operand)."""
    rowwise_scales: bool = False
    """Whether 8-bit matmuls scale each row of one operand and each column of the other, which takes another kernel than
    one scale a tensor (torchao, float8/config.py, Float8LinearRecipeName.ROWWISE)."""
    dropout: bool = False
    """Whether dropout is on (after both branches of a layer, and on attention scores), whose masks are kept: in runs
    whose source does not say; a plan follows its workload."""
