"""How long does the attention core run, forward and backward, by kernel, device generation, length and head width?

Fused kernels::

    t = flops / (P * fraction * s / (s + s_half) * head) + launch       backward: 2.5 x the flops, own fraction and half

``P`` is the dense 16-bit peak, ``s`` the longest row, ``s_half`` grows with the peak (a faster device needs longer rows
to fill), ``head`` falls linearly from 1 at 128 wide heads to ``narrow_head`` at 64: softmax work is per score, matmul
work per score and head width.

Unfused attention (before FlashAttention reached the back-ends in 2022-23) writes the s x s scores::

    forward   2 batched matmuls [s, s, d] over ALL pairs (a masked score is computed too)
              + softmax (read, write) + dropout, where it is on (read, write, mask)
    backward  4 batched matmuls + the same reversed (softmax backward reads two tensors)

Sources, causal rates of H100 SXM5 in TFLOP/s at 512 .. 16k tokens, 128 wide heads, read off transcriptions of the
FlashAttention-3 paper's bar charts (arXiv 2407.08608; the paper itself was not re-read): FlashAttention-2 191-335,
cuDNN 315-539, FlashAttention-3 292-616, Triton 146-378 (forward), FlashAttention-2 214-322, cuDNN 305-518,
FlashAttention-3 316-561 (backward without mask: 5 % lower and half lengths doubled with one, prior); at 64 wide heads
FlashAttention-2 299, cuDNN 388, FlashAttention-3 473. A100, not re-read: arXiv 2307.08691, FlashAttention-2 reaches
73 % of the peak forward and 63 % backward without mask, FlashAttention (Triton) is 1.3 to 1.5 x and about 2 x slower.
Triton on H100: FlashAttention-2 slowed by the same factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.cost.efficiency import LAUNCH_S, REFERENCE_PEAK_FLOPS_PER_S, DeviceRates
from planner.physics.kernels import AttentionChoice

Array = NDArray[np.float64]

BACKWARD_FLOPS = 2.5
"""Backward over forward FLOPs of fused attention (scores are recomputed): Dao, arXiv 2307.08691, section 3.1."""
WIDE_HEAD = 128.0


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """One fused kernel on one device generation: best rates over the 16-bit peak, and lengths at half of them."""

    forward_fraction: float
    backward_fraction: float
    forward_half: float
    backward_half: float
    narrow_head: float

    def seconds(self, flops: Array, longest: float, head_dim: float, peak: float, *, backward: bool) -> Array:
        """Seconds of ``flops`` (of this pass) over rows of ``longest`` tokens."""
        fraction = self.backward_fraction if backward else self.forward_fraction
        half = (self.backward_half if backward else self.forward_half) * peak / REFERENCE_PEAK_FLOPS_PER_S
        slope = (WIDE_HEAD - head_dim) / (WIDE_HEAD - 64.0)
        head = float(np.clip(1.0 - (1.0 - self.narrow_head) * slope, 0.25, 1.0))
        rate = peak * fraction * head * longest / (longest + half)
        return np.where(flops > 0, flops / rate + LAUNCH_S, 0.0)


FLASH2_HOPPER = FusedKernel(0.349, 0.315, 400.0, 510.0, 0.89)
CUDNN_HOPPER = FusedKernel(0.558, 0.514, 370.0, 680.0, 0.72)
FLASH2_AMPERE = FusedKernel(0.66, 0.57, 400.0, 510.0, 0.89)
TRITON_AMPERE = FusedKernel(0.47, 0.285, 400.0, 510.0, 0.89)
TRITON_HOPPER = FusedKernel(0.25, 0.158, 400.0, 510.0, 0.89)
OTHER = FusedKernel(0.45, 0.35, 500.0, 700.0, 0.80)
"""Devices without published rates; prior: between FlashAttention-2 and cuDNN on Hopper."""

BEST: dict[str, FusedKernel] = {"ampere": FLASH2_AMPERE, "hopper": CUDNN_HOPPER, "blackwell": CUDNN_HOPPER}
FLASH2: dict[str, FusedKernel] = {"ampere": FLASH2_AMPERE, "hopper": FLASH2_HOPPER}
TRITON: dict[str, FusedKernel] = {"ampere": TRITON_AMPERE, "hopper": TRITON_HOPPER}
KERNELS: dict[AttentionChoice, dict[str, FusedKernel]] = {"best": BEST, "flash2": FLASH2, "triton": TRITON}

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
    longest: float,
    head_dim: float,
    dropout: bool,
) -> tuple[Array, Array]:
    """Forward and backward seconds of one attention: two [K].

    ``flops``: of the forward pass, as the mask has it; ``scores``: elements of all s x s tables (for unfused ones),
    made by ``products`` batched matmuls; ``dropout``: on these scores (a fused kernel makes its mask as it goes).
    """
    if choice == "unfused":
        return _unfused_seconds(rates, scores, products, head_dim, DROPOUT_SCORE_BYTES if dropout else 0.0)
    kernel = KERNELS[choice].get(architecture, OTHER)
    peak = rates.wide_flops_per_s
    forward_s = kernel.seconds(flops, longest, head_dim, peak, backward=False)
    return forward_s, kernel.seconds(BACKWARD_FLOPS * flops, longest, head_dim, peak, backward=True)


def _unfused_seconds(
    rates: DeviceRates, scores: Array, products: Array, head_dim: float, dropout_bytes: float
) -> tuple[Array, Array]:
    side = np.sqrt(scores / np.maximum(products, 1e-9))
    width = np.full_like(side, head_dim)
    pair_s = rates.wide_matmul_s(side, side, width, products) + rates.wide_matmul_s(side, width, side, products)
    forward_s = pair_s + rates.memory_s((SOFTMAX_BYTES_FORWARD + dropout_bytes) * scores)
    return forward_s, 2.0 * pair_s + rates.memory_s((SOFTMAX_BYTES_BACKWARD + dropout_bytes) * scores)
