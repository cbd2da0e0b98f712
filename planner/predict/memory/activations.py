"""The bytes that a layer keeps for its backward pass, under each recompute policy.

Each operator says what autograd keeps (``saved_width`` elements a token of the layer) and how that tensor is split.
Policies drop some of it (``planner.model.recompute``); ``full`` keeps the layer's input only, 2 s b h bytes
(Korthikanti et al., arXiv 2205.05198, section 5).

Nothing here depends on the schedule: how many micro-batches are in flight is ``planner.predict.stage_memory``'s
business.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.operator import Operator
from planner.model.recompute import freed_operators, region
from planner.predict.layer_keys import LayerKeys, rows_of
from planner.predict.memory.framework_kept import (
    checkpointed_bytes,
    checkpointed_replay,
    gathered_context_bytes,
    mask_bytes,
    output_copy_bytes,
    score_bytes,
)
from planner.predict.physics.physics import TUNED, Physics
from planner.strategy.strategy import Relief
from solver.arrays import Array

ELEMENT_BYTES = 2.0
"""Activations are kept at 16 bit, also when matmuls run in fp8."""


def saved_bytes_of_operator(operator: Operator, keys: LayerKeys) -> Array:
    """Bytes that one operator keeps on one device for one micro-batch, of routed experts on the hottest one: [K]."""
    if operator.saved_width == 0:
        return np.zeros_like(keys.tp)
    keys = rows_of(operator, keys)
    width = operator.saved_width * (operator.saved_bytes_per_element or ELEMENT_BYTES)
    kept: Array = width * keys.tokens / _saved_split(operator, keys)
    if operator.kept_scores:
        kept = kept + score_biases_bytes(operator.kept_scores, keys)
    routed = operator.shard.startswith("expert")
    return kept * keys.hottest(operator.num_experts) if routed else kept


def score_biases_bytes(heads: int, keys: LayerKeys) -> Array:
    """Biases of attention scores by distance with the mask in them, as torch's attention takes them: [K].

    One for each sample, head and pair of tokens (transformers 5.23 modeling_t5.py: ``position_bias`` plus mask).
    """
    return ELEMENT_BYTES * heads / keys.tp * keys.tokens * float(keys.sequence_length)


def _saved_split(operator: Operator, keys: LayerKeys) -> Array:
    """Ways in which a kept tensor is split over the devices of one tensor-parallel group."""
    shard = operator.saved_shard or operator.shard
    if shard in ("row", "heads", "features", "vocabulary"):
        return keys.tp
    if shard in ("expert_row", "expert_features"):
        # Dispatched rows are gathered over etp and features split over it: the two cancel.
        return keys.sequence_split
    if shard == "expert_column":
        return keys.sequence_split / keys.etp
    # column (its input is kept in sequence-split form), sequence, replicated
    return keys.sequence_split


def layer_input_bytes(keys: LayerKeys, hidden_size: int) -> Array:
    """The tensor that enters a layer: [K]."""
    return keys.tokens / keys.sequence_split * hidden_size * ELEMENT_BYTES


def saved_bytes(
    operators: Sequence[Operator],
    keys: LayerKeys,
    relief: Relief,
    hidden_size: int,
    framework: Physics = TUNED,
) -> Array:
    """Bytes that one layer keeps on the device under one policy: [K]."""
    entry = layer_input_bytes(keys, hidden_size)
    if relief.offload:
        return np.zeros_like(keys.tp)
    if relief.recompute == "full":
        return entry
    if relief.recompute == "selective" and framework.operator_checkpointing:
        return checkpointed_bytes(operators, keys, entry, framework)
    freed = freed_operators(operators, relief.modules) if relief.recompute == "selective" else frozenset()
    total = mask_bytes(keys, hidden_size, framework)
    if "attention_core" not in relief.modules:
        total = total + score_bytes(operators, keys, framework) + output_copy_bytes(operators, keys, framework)
        total = total + gathered_context_bytes(operators, keys, framework)
    for operator in operators:
        if operator.name not in freed:
            total = total + saved_bytes_of_operator(operator, keys)
    return np.maximum(total, entry)


def replayed_shares(operators: Sequence[Operator], relief: Relief, framework: Physics = TUNED) -> dict[str, float]:
    """Operators that run a second time in the backward pass, by name, and how much of each, in their order."""
    if relief.recompute == "full":
        return {operator.name: 1.0 for operator in operators}
    if relief.recompute != "selective":
        return {}
    if framework.operator_checkpointing:
        return checkpointed_replay(operators)
    names = {name for module in relief.modules for name in region(operators, module)}
    return {operator.name: 1.0 for operator in operators if operator.name in names}
