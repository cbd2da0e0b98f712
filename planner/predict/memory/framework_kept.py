"""The bytes that a back-end keeps for the backward pass and a tuned run does not.

* Attention without a fused kernel writes the s x s scores of every head and keeps their softmax, 2 bytes a score;
  with dropout also its byte mask and its output, 5 bytes: ``5 a s^2 b / t`` (Korthikanti et al., arXiv 2205.05198,
  section 4.1).  Recomputing the attention core frees them.
* Dropout after the two branches of a layer keeps a byte mask each: ``2 s b h`` (the same section).
* Context parallelism by an all-gather of keys and values keeps them whole, and masks (the native trainer).
* PyTorch's operator-level checkpointing (torchtitan's "selective op", fms) keeps the outputs of every second matmul
  and of attention, and replays the rest (torchtitan, distributed/activation_checkpoint.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.operator import Operator
from planner.predict.layer_keys import LayerKeys, seen_tokens
from planner.predict.physics.physics import TUNED, Physics
from solver.arrays import Array

ELEMENT_BYTES = 2.0
PLAIN_SCORE_BYTES = 2.0
DROPPED_SCORE_BYTES = 5.0
MASKS_PER_LAYER = 2.0
"""Byte masks of the dropouts after attention and after the feed-forward."""


def score_bytes(operators: Sequence[Operator], keys: LayerKeys, framework: Physics) -> Array:
    """Bytes of attention scores that a layer keeps on one device: [K].  Nothing with a fused kernel."""
    if framework.attention != "unfused":
        return np.zeros_like(keys.tp)
    each = DROPPED_SCORE_BYTES if framework.dropout else PLAIN_SCORE_BYTES
    seen = sum(op.num_heads * seen_tokens(op, keys) for op in operators if op.op_class == "attention")
    return each * seen / keys.tp * keys.tokens


def output_copy_bytes(operators: Sequence[Operator], keys: LayerKeys, framework: Physics) -> Array:
    """Bytes of further kept copies of the attention output of a layer on one device: [K]."""
    if framework.attention_output_copies == 0.0:
        return np.zeros_like(keys.tp)
    width = sum(op.num_heads * op.v_dim for op in operators if op.op_class == "attention")
    return framework.attention_output_copies * ELEMENT_BYTES * width * keys.tokens / keys.tp


def gathered_context_bytes(operators: Sequence[Operator], keys: LayerKeys, framework: Physics) -> Array:
    """Bytes that context parallelism without a ring keeps beside the usual in a layer on one device: [K].

    A copy of the attention output in the order of this rank's tokens; under ``ring`` plans also keys and values of the
    other ranks, and a 16-bit mask for each of the two parts of the sequence that this rank's queries lie in.  Parts r
    and ``2 c - 1 - r`` of ``2 c`` see ``r + 1`` and ``2 c - r`` parts of the keys: ``(2 c + 1) (s / 2 c)^2`` scores.
    """
    if not framework.gathered_context:
        return np.zeros_like(keys.tp)
    cores = [operator for operator in operators if operator.op_class == "attention"]
    outputs = sum(core.num_heads * core.v_dim for core in cores)
    pairs = sum(core.num_kv_heads * (core.qk_dim + core.v_dim) for core in cores)
    others = pairs * (keys.cp - 1.0) * keys.tokens / keys.tp
    masks = len(cores) * (2.0 * keys.cp + 1.0) * (keys.sequence_length / (2.0 * keys.cp)) ** 2
    kept = outputs * keys.tokens / keys.tp + np.where(keys.ring > 0, others + masks, 0.0)
    return np.where(keys.cp > 1, ELEMENT_BYTES * kept, 0.0)


def mask_bytes(keys: LayerKeys, hidden_size: int, framework: Physics) -> Array:
    """Bytes of the hidden-wide dropout masks of a layer on one device: [K]."""
    if not framework.dropout:
        return np.zeros_like(keys.tp)
    return MASKS_PER_LAYER * hidden_size * keys.tokens / keys.sequence_split


def kept_matmuls(operators: Sequence[Operator]) -> tuple[tuple[Operator, int], ...]:
    """Matmuls whose output operator-level checkpointing keeps, with the features that it keeps of each.

    The first, third, fifth ... of the layer, in order; a fused qkv counts as three and a gated up projection as two,
    as PyTorch models run them.  Grouped matmuls of experts are not on its list.
    """
    outputs: list[tuple[Operator, int]] = []
    for operator in operators:
        if operator.op_class == "matmul":
            outputs += [(operator, width) for width in separate_outputs(operator, operators)]
    return tuple(outputs[::2])


def separate_outputs(operator: Operator, operators: Sequence[Operator]) -> list[int]:
    """Output features of the matmuls that PyTorch models run for a fused qkv or gated up projection."""
    if operator.num_kv_heads:
        heads, kv_heads = operator.num_heads, operator.num_kv_heads
        return [heads * operator.qk_dim, kv_heads * operator.qk_dim, kv_heads * operator.v_dim]
    gated = any(
        other.op_class == "activation"
        and other.saved_from == operator.name
        and other.read_width == 2 * other.write_width
        for other in operators
    )
    return [operator.out_features // 2] * 2 if gated else [operator.out_features]


def checkpointed_replay(operators: Sequence[Operator]) -> dict[str, float]:
    """Part of each operator that operator-level checkpointing runs again: matmul outputs it does not keep, the rest."""
    kept: dict[str, float] = {}
    for operator, width in kept_matmuls(operators):
        kept[operator.name] = kept.get(operator.name, 0.0) + width / operator.out_features
    shares = {op.name: 1.0 - kept.get(op.name, 0.0) for op in operators if op.op_class != "attention"}
    return {name: share for name, share in shares.items() if share > 0}


def checkpointed_bytes(
    operators: Sequence[Operator], keys: LayerKeys, entry_bytes: Array, framework: Physics = TUNED
) -> Array:
    """Bytes that one layer keeps under operator-level checkpointing, its input included: [K].

    A compiler drops the output of the layer's last matmul: only the residual sum reads it.
    """
    total = entry_bytes
    last = next((operator for operator in reversed(operators) if operator.op_class == "matmul"), None)
    for operator, width in kept_matmuls(operators):
        if framework.compiled_checkpointing and operator is last and operator.shard == "row":
            continue
        split = keys.tp if operator.shard == "column" else keys.sequence_split
        total = total + width * ELEMENT_BYTES * keys.tokens / split
    for operator in operators:
        if operator.op_class == "attention":
            width = operator.num_heads * operator.v_dim
            total = total + width * ELEMENT_BYTES * keys.tokens / keys.tp
    return total
