"""Attention core time, forward and backward, by kernel, device generation, length and head width.

Fused kernels::

    t = flops / (P * fraction * s / (s + s_half) * head) + launch       backward: 2.5 x the flops, own fraction and half

``P`` is the dense 16-bit peak, ``s`` the longest row, ``s_half`` grows with the peak (a faster device needs longer rows
to fill), ``head`` falls linearly from 1 at 128 wide heads to ``narrow_head`` at 64: softmax work is per score, matmul
work per score and head width.

Unfused attention (before FlashAttention reached the back-ends in 2022-23) writes the s x s scores::

    forward   2 batched matmuls [s, s, d] over ALL pairs (a masked score is computed too)
              + softmax (read, write) + dropout, where it is on (read, write, mask)
    backward  4 batched matmuls + the same reversed (softmax backward reads two tensors)

The rates stand in ``profiles/catalogue/architectures.yaml``.  Behind them, causal rates of H100 SXM5 in TFLOP/s at 512
.. 16k tokens, 128 wide heads (arXiv 2407.08608): FlashAttention-2 191-335, cuDNN 315-539, FlashAttention-3 292-616,
Triton 146-378 (forward), FlashAttention-2 214-322, cuDNN 305-518, FlashAttention-3 316-561 (backward without mask: 5 %
lower and half lengths doubled with one, prior); at 64 wide heads FlashAttention-2 299, cuDNN 388, FlashAttention-3 473.
A100: FlashAttention-2 reaches 73 % of the peak forward and 63 % backward without mask (arXiv 2307.08691).
"""

from __future__ import annotations

import numpy as np

from planner.predict.cost.efficiency import LAUNCH_S, REFERENCE_PEAK_FLOPS_PER_S, DeviceRates
from planner.predict.physics.kernels import AttentionChoice
from profiles.catalogue.architectures import FusedAttentionRates, architectures
from solver.arrays import Array

BACKWARD_FLOPS = 2.5
"""Backward over forward FLOPs of fused attention (scores are recomputed): Dao, arXiv 2307.08691, section 3.1."""
WIDE_HEAD = 128.0


def fused_seconds(
    kernel: FusedAttentionRates, flops: Array, longest: Array | float, head_dim: float, peak: float, *, backward: bool
) -> Array:
    """Seconds of ``flops`` (of this pass) over rows of ``longest`` tokens; ``peak``: the device's, dense, 16 bit."""
    fraction = kernel.backward_fraction if backward else kernel.forward_fraction
    half = (kernel.backward_half if backward else kernel.forward_half) * peak / REFERENCE_PEAK_FLOPS_PER_S
    slope = (WIDE_HEAD - head_dim) / (WIDE_HEAD - 64.0)
    head = float(np.clip(1.0 - (1.0 - kernel.narrow_head) * slope, 0.25, 1.0))
    rate = peak * fraction * head * longest / (longest + half)
    return np.where(flops > 0, flops / rate + LAUNCH_S, 0.0)


def fused_kernel(choice: str, architecture: str) -> FusedAttentionRates:
    """The rates of a kernel on an architecture; the prior where nobody published any."""
    known = architectures().fused_attention
    return known.kernels[choice].get(architecture, known.other)


ALIGNED_ELEMENTS = 8
MISALIGNED_FRACTION = 0.42
"""Rate of a 16-bit matmul with an odd row length over the same one padded to a multiple of eight (16 bytes).

Fitted on vTrain's one-node runs (fit part): head and loss of 50,257 words take 4.65 ms a sample unsplit and 1.15 ms
split over two at hidden 1024, 9.05 and 1.95 ms at 2048.  Unfused attention multiplies rows of a head's width: heads of
150 (BLOOM's first sizes) are off those bytes, too.
"""
SOFTMAX_BYTES_FORWARD, SOFTMAX_BYTES_BACKWARD = 3.0, 4.0
"""Bytes a score that softmax moves: it reads the unmasked half (1 on average) and writes all (2); backward it reads the
unmasked half of two tensors and writes one.  Megatron-LM's fused_kernels/scaled_upper_triang_masked_softmax.h (not
re-read), 16 bit."""
DROPOUT_SCORE_BYTES = 5.0
"""Bytes a score that dropout moves: it reads, writes and writes a mask; backward it reads gradient and mask, writes."""


def attention_seconds(
    choice: AttentionChoice,
    architecture: str,
    rates: DeviceRates,
    *,
    flops: Array,
    scores: Array,
    products: Array,
    longest: Array | float,
    head_dim: float,
    dropout: bool,
) -> tuple[Array, Array]:
    """Forward and backward seconds of one attention: two [K].

    ``flops``: of the forward pass, as the mask has it; ``scores``: elements of all s x s tables (for unfused ones),
    made by ``products`` batched matmuls; ``dropout``: on these scores (a fused kernel makes its mask as it goes).
    """
    if choice == "unfused":
        return _unfused_seconds(rates, scores, products, head_dim, DROPOUT_SCORE_BYTES if dropout else 0.0)
    kernel = fused_kernel(choice, architecture)
    peak = rates.wide_flops_per_s
    forward_s = fused_seconds(kernel, flops, longest, head_dim, peak, backward=False)
    return forward_s, fused_seconds(kernel, BACKWARD_FLOPS * flops, longest, head_dim, peak, backward=True)


def _unfused_seconds(
    rates: DeviceRates, scores: Array, products: Array, head_dim: float, dropout_bytes: float
) -> tuple[Array, Array]:
    side = np.sqrt(scores / np.maximum(products, 1e-9))
    width = np.full_like(side, head_dim)
    pair_s = rates.wide_matmul_s(side, side, width, products) + rates.wide_matmul_s(side, width, side, products)
    if head_dim % ALIGNED_ELEMENTS and rates.measured is None:
        pair_s = pair_s / MISALIGNED_FRACTION
    forward_s = pair_s + rates.memory_s((SOFTMAX_BYTES_FORWARD + dropout_bytes) * scores)
    return forward_s, 2.0 * pair_s + rates.memory_s((SOFTMAX_BYTES_BACKWARD + dropout_bytes) * scores)
