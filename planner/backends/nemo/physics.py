"""The behaviour of a NeMo performance recipe."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.megatron_bridge.physics import RECIPES

NEMO = replace(
    RECIPES,
    name="nemo",
    summary="a NeMo performance recipe: tuned Megatron-Core with DeepEP dispatch",
    dispatch="node",
)
"""The recipes that became Megatron-Bridge's.  Experts' tokens go through DeepEP or HybridEP (flex dispatcher), once a
node and device."""
NEMO_2_2 = replace(
    NEMO,
    name="nemo-2.2",
    summary="a NeMo performance recipe of 25.02: experts' tokens in an all-to-all",
    dispatch="expert",
    graphed_on_grace=frozenset(),
)
"""DeepEP came to Megatron-Core on 25 February 2025 (NVIDIA/Megatron-LM@0d389f5e99), after its branch.  Grace hosts came
later."""
NEMO_2_1 = replace(
    NEMO_2_2,
    name="nemo-2.1",
    summary="a NeMo recipe of 2023 and 2024: all-to-all, loss over fp32 logits",
    wide_loss=True,
)
"""Also the loss of Megatron-Core in fp32: TransformerEngine's came on 8 March 2025 (Megatron-LM@0f60adbd3)."""
