"""The time of a chunked recurrence (Mamba-2, gated DeltaNet, Kimi delta, lightning attention) on one device.

Its kernels are Triton programs of small matmuls between exponentials, masks, casts and partial sums in fp32.  Neither
the tensor cores nor the memory bound them: gated DeltaNet's forward kernels take 1.72 ns a token and head of 128 on an
H200 and 1.46 ns on a GB200 (ratio 1.18), whose fp32 vector rates are 67 and 80 TFLOP/s (1.19), dense 16-bit rates 989
and 2,500 (2.53), bandwidths 4.8 and 8 TB/s (1.67).  So a kernel's rate is a multiple of the vector rate::

    work_s = FLOPs / (VECTOR_RATE * fp32 vector FLOP/s)                    backward: BACKWARD * that

The delta rule hands its state from chunk to chunk inside one kernel, as many programs as heads and samples: that part
of the work takes at least so long, however few heads a device has::

    seconds = (1 - part) * work_s + max(part * work_s, CHUNK_S * sequence / chunk)

Mamba-2 passes its states in a kernel of its own, too short to see.  Shape letter: K keys.

Fitted on one device, judged on another that was not used (``benchmarks/published/scan_kernels.csv``): ``gated_delta``
on the H200 of QwenLM/FlashQLA@c18a4860 (benchmark_results_H200.txt, its FLA columns: 152 forward, 32 backward shapes;
median error 4 and 9 %).  ``mamba2`` on an H100, forward (vllm-project/vllm#27299, "Original", 4,096 to 16,384 tokens);
its backward ratio is counted from the kernels (state-spaces/mamba@e9594ce1, ops/triton/ssd_combined.py): states and
C B^T again, gradients of states, x, B, C and of the decays, 10 N P + 3 C P for 4 N P + C P: 2.6 at C P = N P.
``kimi_delta`` on an H20, forward (MoonshotAI/FlashKDA@9f544145, BENCHMARK_H20.md, T = 8,192, H = 96); backward as
gated delta's.  ``lightning``: fla's ``chunk_retention``, the same recurrence in chunks of 64, on a GB200 (README of
fla-org/flash-linear-attention@bc3b101d).  ``mlstm``: taken as lightning's, not measured.
"""

from __future__ import annotations

import numpy as np

from planner.model.operator import Operator
from planner.predict.cost.efficiency import LAUNCH_S
from planner.predict.cost.hardware import Hardware
from planner.predict.layer_keys import LayerKeys
from solver.arrays import Array

VECTOR_RATE: dict[str, float] = {
    "mamba2": 1.19,
    "gated_delta": 1.60,
    "kimi_delta": 0.73,
    "lightning": 1.23,
    "mlstm": 1.23,
}
"""FLOPs of a recurrence for each FLOP that the fp32 vector units could do."""
BACKWARD: dict[str, float] = {"mamba2": 2.6, "gated_delta": 3.26, "kimi_delta": 3.26, "lightning": 2.33, "mlstm": 2.33}
"""Backward over forward seconds."""
CHUNK_S: dict[str, tuple[float, float]] = {"gated_delta": (1.10e-6, 3.4e-6), "kimi_delta": (1.10e-6, 3.4e-6)}
"""Seconds of one chunk of the kernels that hand the state on, forward and backward (states again, then gradients)."""
CHUNK_PART = 0.22, 0.083
"""Part of the work that those kernels do, forward and backward."""
WITHOUT_VECTOR_RATE = 0.1
"""Rate over the dense 16-bit peak on a device whose fp32 rate the catalogue lacks: an H100's, 1.6 * 67 of 989."""


def scan_s(operator: Operator, keys: LayerKeys, hardware: Hardware, flops: Array) -> tuple[Array, Array]:
    """Forward and backward seconds of one chunked recurrence: two [K]; ``flops`` of its forward pass on one device."""
    rates, kernel = hardware.rates, operator.kernel
    vector = rates.vector_flops_per_s * VECTOR_RATE[kernel]
    forward_s = flops / (vector or rates.wide_flops_per_s * WITHOUT_VECTOR_RATE)
    floors = CHUNK_S.get(kernel, (0.0, 0.0))
    chunks = np.ceil(keys.sequence_length / max(operator.chunk, 1))
    passes = []
    for work_s, part, floor_s in zip((forward_s, BACKWARD[kernel] * forward_s), CHUNK_PART, floors, strict=True):
        handed_s = np.maximum(part * work_s, floor_s * chunks)
        passes.append((1.0 - part) * work_s + handed_s + LAUNCH_S)
    return passes[0], passes[1]
