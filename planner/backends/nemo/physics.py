"""The behaviour of a NeMo performance recipe."""

from __future__ import annotations

from dataclasses import replace

from planner.predict.physics.host import CORE_CALL_S, CORE_EACH_EXPERT_S, CORE_EXPERT_LAUNCHES, CORE_LAUNCH_S
from planner.predict.physics.physics import Physics

NEMO = Physics(
    name="nemo",
    time_spread=0.08,
    studied_devices=2048,
    summary="a NeMo performance recipe: tuned Megatron-Core with DeepEP dispatch",
    dispatch="node",
    launch_s=CORE_LAUNCH_S,
    call_s=CORE_CALL_S,
    expert_launches=CORE_EXPERT_LAUNCHES,
    eager_expert_bias=True,
    eager_expert_weights=True,
    sequence_first_scans=True,
    each_expert_s=CORE_EACH_EXPERT_S,
    eight_bit_experts=True,
    eight_bit_inputs=True,
    overlaps_latent_tp=False,
    overlaps_tp_beside_ep=False,
    graphed_on_grace=frozenset({"matmul", "attention", "norm", "rope", "residual", "router"}),
)
"""Experts' tokens go through DeepEP or HybridEP (flex dispatcher), once a node and device.  Overlap as in
``MEGATRON_CORE``.  The loss is TransformerEngine's kernel (NVIDIA-NeMo/Megatron-Bridge@067f987df,
scripts/performance/utils/overrides.py:84).  8-bit recipes gather parameters in 8 bit and keep no others
(Megatron-Bridge, training/mixed_precision.py, fp8_param_gather), which is 1 + 1 bytes as 16 bit are 2.

On GB200 and GB300 most recipes capture CUDA graphs (NVIDIA/NeMo@v2.4.0, scripts/performance/recommended_model_configs/
model_configs_gb200.csv; Megatron-Bridge, scripts/performance: cuda_graph_scope attn, moe_router, moe_preprocess;
Megatron-MoE-ModelZoo, best_practice/qwen3); dropless experts stay eager.

``time_spread``: dense models, fit part, 80 rows of two publications: 0.078; 221 other rows, of five, have 0.084."""
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
