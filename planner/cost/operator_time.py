"""How long does one operator of a layer run forward on one device?  Shape letter: K keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.cost.hardware import Hardware
from planner.cost.layer_keys import LayerKeys
from planner.model.flops import attention_context
from planner.model.operator import Operator

Array = NDArray[np.float64]


def operator_forward_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    """Forward seconds of one operator on one device: [K]."""
    rates = hardware.rates
    tokens, local = keys.tokens, keys.tokens / keys.sequence_split
    if operator.op_class == "grouped_matmul":
        return _expert_matmul_s(operator, keys, hardware)
    if operator.op_class in ("matmul", "router") and operator.in_features:
        n, k = float(operator.out_features), float(operator.in_features)
        if operator.shard in ("column", "vocabulary"):
            return rates.matmul_s(tokens, n / keys.tp, np.full_like(tokens, k))
        if operator.shard == "row":
            return rates.matmul_s(tokens, np.full_like(tokens, n), k / keys.tp)
        return rates.matmul_s(local, np.full_like(tokens, n), np.full_like(tokens, k))
    if operator.op_class == "attention":
        context = attention_context(keys.sequence_length, operator.window, causal=operator.causal)
        flops = 2.0 * context * operator.num_heads / keys.tp * (operator.qk_dim + operator.v_dim) * tokens
        longest = min(operator.window or keys.sequence_length, keys.sequence_length)
        return rates.attention_s(flops, np.full_like(tokens, float(longest)))
    width = float(operator.read_width + operator.write_width)
    return rates.memory_s(_rows(operator, keys) * width / _feature_split(operator, keys) * 2.0)


def _rows(operator: Operator, keys: LayerKeys) -> Array:
    """Tokens whose widths a point-wise operator reads and writes on one device."""
    if operator.shard in ("sequence", "replicated"):
        return keys.tokens / keys.sequence_split
    if operator.shard.startswith("expert"):
        return keys.tokens / keys.sequence_split * keys.etp
    return keys.tokens


def _feature_split(operator: Operator, keys: LayerKeys) -> Array:
    if operator.shard in ("heads", "features", "column", "row", "vocabulary"):
        return keys.tp
    return keys.etp if operator.shard == "expert_features" else np.ones_like(keys.tp)


def _expert_matmul_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    rows = keys.tokens / keys.sequence_split * operator.tokens_per_token * keys.etp
    local_experts = np.maximum(operator.num_experts / keys.ep, 1.0)
    n, k = np.full_like(rows, float(operator.out_features)), np.full_like(rows, float(operator.in_features))
    if operator.shard == "expert_column":
        n = n / keys.etp
    else:
        k = k / keys.etp
    return hardware.rates.matmul_s(rows / local_experts, n, k, local_experts)
