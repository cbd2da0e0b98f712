"""The time of one operator of a layer on one device, forward and backward.  Shape letter: K keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.flops import forward_flops
from planner.model.operator import Operator
from planner.predict.cost.attention_time import (
    ALIGNED_ELEMENTS,
    BACKWARD_FLOPS,
    MISALIGNED_FRACTION,
    attention_seconds,
)
from planner.predict.cost.efficiency import LAUNCH_S
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.launches import has_eager_bias, has_eager_weights
from planner.predict.cost.measured import better_of
from planner.predict.cost.ring_attention import row_tokens, steps_s
from planner.predict.cost.scan_time import scan_s
from planner.predict.layer_keys import LayerKeys, PackedKeys, seen_tokens
from planner.predict.memory.backward import local_parameters
from profiles.prediction.rungs import Prediction
from solver.arrays import Array

UNFUSED_PASSES: dict[str, float] = {"norm": 9.0, "activation": 1.7, "rope": 4.2, "cross_entropy": 4.5}
"""Bytes that PyTorch's eager operators move over those of one fused kernel, counted from the operators themselves.

RMS norm in fp32 (cast, square, mean, scale, cast, weight): 36 bytes an element for 4.  Gated activation (silu, then
product): 10 for 6.  Rotation of fp32 pairs: 20 for 4, less in the backward pass.  Cross-entropy (cast to fp32,
log-softmax; backward in fp32 and a cast back): 18 for 4 and 22 for 6.  A LayerNorm has its own kernel everywhere.
"""
WIDE_LOSS_PASSES, WIDE_LOSS_BACKWARD = 5.5, 10.0 / 22.0
"""Bytes that Megatron-Core's fused loss moves over those of one kernel, and backward over forward ones.

Its compiled parts end at the two collectives over the vocabulary: cast and maximum (2 read, 4 written), exponential and
sum (4, 4), division (4, 4): 22 bytes a logit for 4; backward the softmax is read, scaled in place and written in 16 bit
(4, 4, 2) (NVIDIA/Megatron-LM@d98e8a64d, core/fusions/fused_cross_entropy.py, core/tensor_parallel/cross_entropy.py).
"""
LOG_PROBABILITY_PASSES, LOG_PROBABILITY_BACKWARD = 13.5, 58.0 / 54.0
"""The same of log-probabilities and entropies in chunks of the vocabulary, by eager operators on fp32 logits.

Forward, bytes a logit: cast (2 read, 4 written), temperature (4, 4), maximum (4), difference (4, 4), exponential
(4, 4), sum (4), product with the logit (8, 4), sum (4): 54 for 4.  Backward, after another product with the
vocabulary: cast (2, 4), temperature, difference, exponential, times the gradient, temperature (4, 4 each), casts for
the two products (4, 2 each): 58 (PrimeIntellect-ai/prime-rl@32adbba8, trainer/models/layers/lm_head.py,
_ChunkedLogProbEntropyFn).
"""
EXPERT_BIAS_BYTES = (28.0, 40.0)
"""Bytes an element of the experts' output that an eager output bias moves, forward and backward.

Forward: bias times fp32 probability (4 written), added to the 16-bit output (2 + 4 read, 4), experts joined (4, 4),
cast (4, 2).  Backward: cast (2, 4), the gradient times probability and times bias, each summed (4, 4 and 4, twice), a
16-bit gradient of the output (4, 2), joined (2, 2) (NVIDIA/Megatron-LM@d98e8a64d, core/transformer/moe/experts.py,
_apply_bias; DeepEP's dispatcher wants fp32 probabilities).
"""
WEIGHTED_PASSES, WEIGHTED_BACKWARD = 4.0, 2.5
"""Bytes that an ungated non-linearity of experts and its eager weighting move over one fused kernel's, and backward
over forward ones.

Forward, bytes an element: the compiled non-linearity (2 read, 2 written), times fp32 probability (2, 4), cast (4, 2):
16 for 4.  Backward: cast (2, 4), the gradient times probability (4, 4) and cast (4, 2), times the activation (4 + 2, 4)
and summed (4), the non-linearity's own (2 + 2, 2): 40 (NVIDIA/Megatron-LM@d98e8a64d, core/transformer/moe/experts.py:
1010-1016; use_fused_weighted_squared_relu is off by default, core/transformer/transformer_config.py:516).
"""
TRANSPOSE_BYTES = 4.0
"""Bytes an element of a 16-bit copy in another order: read and written (core/ssm/mamba_mixer.py:691 and 727)."""
POINTWISE_BACKWARD = 1.5
"""Backward over forward bytes of a point-wise operator: it reads its input and a gradient and writes a gradient."""
UNFUSED_BACKWARD: dict[str, float] = {"activation": 2.6}
"""The same of an operator that runs as several passes.  Gated activation: two products and the derivative (3 tensors
each), the two halves joined (4): 26 bytes an element for 10 forward (nanotron nn/activations.py)."""
SEPARATE_BACKWARD: dict[str, float] = {"norm": 2.5, "residual": 2.2, "activation": 2.0}
"""The same where reductions are kernels of their own.  Norm (read, write): two more reads for weight and bias.  Bias,
dropout and residual sum (two reads, a write): gradient and mask read, gradient written, read for the bias, and added to
the other branch's.  Activation (read, write): one more read for the bias."""
MIXER_FRACTION: dict[str, float] = {
    "selective_scan": 0.03,
    "convolution": 0.03,
    "index_scores": 0.4,
}
"""Best rate of other token mixers' kernels over the dense 16-bit peak; priors, not fitted.

A selective scan and a short convolution run without tensor cores (fp32 vector peak is 1/15 of an H100's 16-bit peak,
half of it reached); scores of an indexer are matmuls followed by a selection.  Chunked recurrences:
``planner.predict.cost.scan_time``.
"""
MIXER_BACKWARD: dict[str, float] = {"selective_scan": 3.0, "convolution": 2.0, "index_scores": 2.0}
"""Their backward over forward: a scan makes the states again, then two products for each forward one."""
DYNAMIC_CAST_BYTES = 5.0
"""Bytes an element of a cast by its present largest value: read for it (2), read again and written (2 + 1)."""
TRANSPOSED_BYTES = 2.0
"""Bytes an element of the copy of an 8-bit operand in the other layout: read and written."""
ROWWISE_PRODUCT = 1.2
"""Seconds of an 8-bit product with a scale a row over those with one scale a tensor, on PyTorch's CUTLASS kernel.

From one published pair, which no row holds: Llama 3 8B under torchtitan on eight H100 of 2.4 TB/s takes 7,640 tokens/s
a device with one scale a tensor and 7,020 with one a row (pytorch/ao@36027d82d, docs/source/eager_tutorials/
pretraining.rst, 54-103).  Bytes of the casts are as many within a tenth (torchao/testing/training/roofline_utils.py,
146-210), so what differs is the kernel.
"""
Sizes = tuple[Array, Array, Array, Array]
"""Rows, columns, depth and number of products of one (grouped) matmul: each [K]."""


def operator_forward_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    """Forward seconds of one operator on one device: [K]."""
    seconds, factor = _forward_s(operator, keys, hardware), hardware.factors.compute
    return seconds if factor == 1.0 else seconds * factor


def _forward_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    if is_matmul(operator):
        m, n, k, products = matmul_sizes(operator, keys)
        if is_wide(operator):
            return hardware.rates.wide_matmul_s(m, n, k, products) * _misalignment(operator, keys, hardware)
        matmul_s = _scaled(hardware) * hardware.rates.matmul_s(m, n, k, products)
        casts_s = _casts_s((m, n, k, products), hardware)[0]
        return matmul_s + casts_s + expert_bias_s(operator, keys, hardware)[0]
    if operator.op_class == "attention":
        return _attention_s(operator, keys, hardware)
    if operator.op_class == "chunk_scan":
        return _scan_s(operator, keys, hardware)[0]
    if operator.op_class in MIXER_FRACTION:
        return _mixer_s(operator, keys, hardware)
    if operator.op_class == "weight_pass":
        return hardware.rates.memory_s(passed_bytes(operator, keys), operator.op_class)
    return hardware.rates.memory_s(_passes(operator, hardware) * moved_bytes(operator, keys), operator.op_class)


def _passes(operator: Operator, hardware: Hardware) -> float:
    """Bytes of a point-wise operator as this back-end runs it over those of one fused kernel."""
    if operator.op_class == "cross_entropy" and hardware.physics.log_probability_loss:
        return LOG_PROBABILITY_PASSES
    if operator.op_class in hardware.physics.unfused:
        return UNFUSED_PASSES.get(operator.op_class, 1.0)
    if has_eager_weights(operator, hardware.physics):
        return WEIGHTED_PASSES
    return WIDE_LOSS_PASSES if _is_wide_loss(operator, hardware) else 1.0


def _is_wide_loss(operator: Operator, hardware: Hardware) -> bool:
    return operator.op_class == "cross_entropy" and hardware.physics.wide_loss


def operator_backward_s(
    operator: Operator, keys: LayerKeys, hardware: Hardware, forward_s: Array
) -> tuple[Array, Array]:
    """Seconds of the input gradient and of the weight gradient: two [K].

    The datasheet model takes a matmul's two gradients to run like the forward pass; a profile looks up their own
    shapes, input gradient [m, n] x [n, k] and weight gradient [n, m] x [m, k].
    """
    if operator.op_class == "attention":
        return attention_backward_ratio(operator, keys, hardware) * forward_s, np.zeros_like(forward_s)
    if operator.op_class == "chunk_scan":
        return hardware.factors.compute * _scan_s(operator, keys, hardware)[1], np.zeros_like(forward_s)
    if operator.op_class in ("matmul", "grouped_matmul", "router"):
        bias_s = expert_bias_s(operator, keys, hardware)
        factor = hardware.factors.compute
        input_s, weight_s = _matmul_backward_s(operator, keys, hardware, forward_s - factor * bias_s[0])
        input_s = input_s + factor * bias_s[1]
        if operator.shard == "vocabulary" and hardware.physics.log_probability_loss:
            input_s = input_s + forward_s
        return input_s, np.zeros_like(weight_s) if operator.frozen else weight_s
    if operator.op_class in MIXER_BACKWARD:
        return MIXER_BACKWARD[operator.op_class] * forward_s, np.zeros_like(forward_s)
    if operator.op_class == "weight_pass":
        return (forward_s if operator.passes_back else np.zeros_like(forward_s)), np.zeros_like(forward_s)
    if operator.frozen and operator.op_class == "embedding":
        return np.zeros_like(forward_s), np.zeros_like(forward_s)
    ratio = POINTWISE_BACKWARD
    if operator.op_class in hardware.physics.unfused:
        ratio = UNFUSED_BACKWARD.get(operator.op_class, ratio)
    elif _is_wide_loss(operator, hardware):
        ratio = WIDE_LOSS_BACKWARD
    elif has_eager_weights(operator, hardware.physics):
        ratio = WEIGHTED_BACKWARD
    if operator.op_class == "cross_entropy" and hardware.physics.log_probability_loss:
        ratio = LOG_PROBABILITY_BACKWARD
    if hardware.physics.separate_reductions:
        ratio = SEPARATE_BACKWARD.get(operator.op_class, ratio)
    return ratio * forward_s, np.zeros_like(forward_s)


def expert_bias_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> tuple[Array, Array] | tuple[float, float]:
    """Seconds of an eager bias of the experts' output, forward and backward: two [K], or zeros without one."""
    if not has_eager_bias(operator, hardware.physics):
        return 0.0, 0.0
    m, n, _, products = matmul_sizes(operator, keys)
    forward_s, backward_s = (hardware.rates.memory_s(each * m * n * products) for each in EXPERT_BIAS_BYTES)
    return forward_s, backward_s


def _matmul_backward_s(
    operator: Operator, keys: LayerKeys, hardware: Hardware, forward_s: Array
) -> tuple[Array, Array]:
    factor, rates = hardware.factors.compute, hardware.rates
    if not is_matmul(operator) or (rates.measured is None and (is_wide(operator) or not rates.casts)):
        return forward_s, forward_s
    m, n, k, products = matmul_sizes(operator, keys)
    if rates.measured is None:
        input_s = weight_s = rates.matmul_s(m, n, k, products)
    else:
        seconds = rates.wide_matmul_s if is_wide(operator) else rates.matmul_s
        input_s, weight_s = seconds(m, k, n, products, "dgrad"), seconds(n, k, m, products, "wgrad")
    if not is_wide(operator):
        _, gradient_s, again_s = _casts_s((m, n, k, products), hardware)
        scaled = _scaled(hardware)
        input_s, weight_s = scaled * input_s + gradient_s, scaled * weight_s + again_s
    return factor * input_s, factor * weight_s


def _scaled(hardware: Hardware) -> float:
    """Factor on the seconds of an 8-bit product for how its operands are scaled."""
    return ROWWISE_PRODUCT if hardware.rates.casts and hardware.physics.rowwise_scales else 1.0


def _casts_s(sizes: Sizes, hardware: Hardware) -> tuple[Array, Array, Array]:
    """Seconds around an 8-bit matmul's forward pass, its input gradient and its weight gradient: three [K].

    One cast of the incoming gradient serves both products.  Weights are cast once a step and counted nowhere, or in
    every pass (``dynamic_casts``).
    """
    m, n, k, products = sizes
    taken, weights, gradient = m * k * products, n * k * products, m * n * products
    rates = hardware.rates
    if not (rates.casts and hardware.physics.dynamic_casts):
        return rates.cast_s(taken), rates.cast_s(gradient), np.zeros_like(taken)
    both = DYNAMIC_CAST_BYTES + TRANSPOSED_BYTES
    forward_s = rates.memory_s(DYNAMIC_CAST_BYTES * (taken + weights))
    return forward_s, rates.memory_s(both * (gradient + weights)), rates.memory_s(TRANSPOSED_BYTES * taken)


def is_wide(operator: Operator) -> bool:
    """Whether a matmul stays in 16 bit when the layers run in 8: the head and the router do in every back-end."""
    return operator.module == "head" or operator.op_class == "router"


def _misalignment(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array | float:
    """Factor on the seconds of a vocabulary matmul whose rows start off the tensor cores' 16 bytes: [K] or 1."""
    aligned = hardware.physics.pads_vocabulary or operator.out_features % ALIGNED_ELEMENTS == 0
    if aligned or operator.shard != "vocabulary" or hardware.rates.measured is not None:
        return 1.0
    return np.where(keys.tp == 1, 1.0 / MISALIGNED_FRACTION, 1.0)


def is_matmul(operator: Operator) -> bool:
    """Whether the operator is a (grouped) matrix product."""
    if operator.op_class == "grouped_matmul":
        return True
    return operator.op_class in ("matmul", "router") and bool(operator.in_features)


def matmul_sizes(operator: Operator, keys: LayerKeys) -> Sizes:
    """What one device multiplies, of routed experts the hottest one: [K] each."""
    tokens = keys.tokens
    n, k = np.full_like(tokens, float(operator.out_features)), np.full_like(tokens, float(operator.in_features))
    one = np.ones_like(tokens)
    if operator.op_class == "grouped_matmul":
        rows = tokens / keys.sequence_split * operator.tokens_per_token * keys.etp * keys.hottest(operator.num_experts)
        experts = np.maximum(operator.num_experts / keys.ep, 1.0)
        if operator.shard == "expert_column":
            return rows / experts, n / keys.etp, k, experts
        return rows / experts, n, k / keys.etp, experts
    rows = tokens * operator.tokens_per_token + operator.further_rows * keys.micro_batch_size
    if operator.shard in ("column", "vocabulary"):
        return rows, n / keys.tp, k, one
    if operator.shard == "row":
        return rows, n, k / keys.tp, one
    if operator.shard in ("heads", "features"):  # one product a head or group of heads, each on one rank
        return rows / keys.tp, n, k, one
    return rows / keys.sequence_split, n, k, one


def moved_bytes(operator: Operator, keys: LayerKeys) -> Array:
    """Bytes that a point-wise operator reads and writes on one device, in 16 bit: [K]."""
    width = float(operator.read_width + operator.write_width)
    moved: Array = _rows(operator, keys) * width / _feature_split(operator, keys) * 2.0
    if operator.op_class == "permute":
        # One of its two copies is of the tokens that this rank has, the other of those that it receives.
        return moved * 0.5 * (1.0 + keys.hottest(operator.num_experts))
    return moved


def passed_bytes(operator: Operator, keys: LayerKeys) -> Array:
    """Bytes that one pass over a weight moves on one device: [K]."""
    weights = replace(operator, parameters=operator.passed_weights)
    return operator.passed_bytes * local_parameters(weights, keys)


def measured_attention(operator: Operator, keys: LayerKeys, hardware: Hardware, flops: Array) -> Prediction | None:
    """What the profile says about the attention of one micro-batch; None without a profile.

    Looked up is whole causal attention over the sequence, in a ring over a step's part of it; a window or packed
    documents scale it by their part of its FLOPs.
    """
    measured = hardware.rates.measured
    if measured is None:
        return None
    held = np.where(keys.ring > 0, 1.0, keys.cp)
    heads = np.maximum(operator.num_heads / keys.tp / held, 1.0)
    kv_heads = np.maximum(operator.num_kv_heads / keys.tp / held, 1.0)
    sequence = row_tokens(keys, causal=operator.causal)
    found = measured.attention(keys.micro_batch_size, sequence, heads, kv_heads, operator.qk_dim)
    whole = keys.micro_batch_size * sequence**2 * heads * (operator.qk_dim + operator.v_dim)
    return Prediction(found.time_s * flops / whole, found.sigma, found.rung)


def attention_flops(operator: Operator, keys: LayerKeys) -> Array:
    """Forward FLOPs of one attention on one device: [K]."""
    context = keys.context(operator.window, causal=operator.causal)
    if operator.of_source:
        context = float(seen_tokens(operator, keys))
    heads = operator.num_heads / keys.tp
    return 2.0 * context / operator.stride * heads * (operator.qk_dim + operator.v_dim) * keys.tokens


def mixer_flops(operator: Operator, keys: LayerKeys) -> Array:
    """Forward FLOPs of a scan, a short convolution or an indexer's scores on one device: [K]."""
    if operator.op_class == "index_scores" and isinstance(keys, PackedKeys):
        width = 2.0 * operator.num_heads * operator.qk_dim / operator.stride
        return keys.context(None, causal=operator.causal) * width * keys.tokens / _feature_split(operator, keys)
    each = forward_flops(operator, round(float(keys.sequence_length)), causal=operator.causal)
    return each * keys.tokens / _feature_split(operator, keys)


def _scan_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> tuple[Array, Array]:
    """A chunked recurrence, forward and backward; at least what its inputs and outputs take to move."""
    forward_s, backward_s = scan_s(operator, keys, hardware, mixer_flops(operator, keys))
    moved_s = hardware.rates.memory_s(moved_bytes(operator, keys), operator.op_class)
    copies_s = _transposes_s(operator, keys, hardware)
    return np.maximum(moved_s, forward_s) + copies_s, np.maximum(2.0 * moved_s, backward_s) + copies_s


def _transposes_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    """One pass's copies of a recurrence's inputs, its gate among them, and of its output, for several samples: [K]."""
    if not hardware.physics.sequence_first_scans:
        return np.zeros(len(keys))
    width = float(operator.read_width + 2 * operator.write_width)
    moved = TRANSPOSE_BYTES * _rows(operator, keys) * width / _feature_split(operator, keys)
    return np.where(keys.micro_batch_size > 1, hardware.rates.memory_s(moved), 0.0)


def _mixer_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    """Roofline of one of these kernels: its FLOPs at its class's rate, or the bytes that it moves."""
    flops_s = mixer_flops(operator, keys) / (hardware.rates.wide_flops_per_s * MIXER_FRACTION[operator.op_class])
    return np.maximum(hardware.rates.memory_s(moved_bytes(operator, keys), operator.op_class), flops_s + LAUNCH_S)


def attention_backward_ratio(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    """Backward over forward seconds of one attention: [K].  A measured forward time keeps the kernel's ratio."""
    kernels_s, steps = _attention_model_s(operator, keys, hardware), steps_s(operator, keys, hardware.rates)
    forward_s, backward_s = kernels_s[0] + steps[0], kernels_s[1] + steps[1]
    ratio: Array = np.divide(backward_s, forward_s, out=np.full(len(keys), BACKWARD_FLOPS), where=forward_s > 0)
    return ratio


def _attention_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    model_s, _ = _attention_model_s(operator, keys, hardware)
    found = measured_attention(operator, keys, hardware, attention_flops(operator, keys))
    kernels_s = model_s if found is None else better_of(found, model_s)
    return kernels_s + steps_s(operator, keys, hardware.rates)[0]


def _attention_model_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> tuple[Array, Array]:
    """Forward and backward seconds as the back-end's kernel runs it on this device: two [K]."""
    products = keys.micro_batch_size * operator.num_heads / keys.tp
    return attention_seconds(
        hardware.physics.attention,
        hardware.pool.device.architecture,
        hardware.rates,
        flops=attention_flops(operator, keys),
        scores=products * float(keys.sequence_length) * seen_tokens(operator, keys) / keys.cp,
        products=products,
        longest=np.minimum(row_tokens(keys, causal=operator.causal), float(operator.window or keys.sequence_length)),
        head_dim=0.5 * (operator.qk_dim + operator.v_dim),
        dropout=hardware.physics.dropout,
    )


def _rows(operator: Operator, keys: LayerKeys) -> Array:
    """Tokens whose widths a point-wise operator reads and writes on one device."""
    if operator.shard in ("sequence", "replicated"):
        return keys.tokens / keys.sequence_split
    if operator.shard.startswith("expert"):
        return keys.tokens / keys.sequence_split * keys.etp * keys.hottest(operator.num_experts)
    return keys.tokens


def _feature_split(operator: Operator, keys: LayerKeys) -> Array:
    if operator.shard in ("heads", "features", "column", "row", "vocabulary"):
        return keys.tp
    return keys.etp if operator.shard == "expert_features" else np.ones_like(keys.tp)
