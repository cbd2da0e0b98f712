"""Releases of Megatron-Bridge that NVIDIA's published tables ran, as its performance recipes run them.

What a recipe switches on for one model (degrees, overlap of experts' exchanges, replayed modules, dispatcher) are
fields of a strategy.  What its software does by itself is here.  Read at the tags v0.1.0rc4, v0.2.0, v0.3.0, v0.4.0 and
v0.5.1 of NVIDIA-NeMo/Megatron-Bridge; containers: 25.09 is v0.1.0, 25.11 v0.2.0, 26.06.01 v0.5.1.
"""

from __future__ import annotations

from planner.predict.physics.host import CORE_CALL_S, CORE_EACH_EXPERT_S, CORE_EXPERT_LAUNCHES, CORE_LAUNCH_S
from planner.predict.physics.physics import Physics

RECIPES = Physics(
    name="bridge-recipes",
    time_spread=0.08,
    studied_devices=2048,
    summary="a performance recipe of Megatron-Bridge 0.1 to 0.5: tuned Megatron-Core",
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
"""A plan names its dispatcher; without one tokens go in an all-to-all (scripts/performance/utils/overrides.py:225-228
@v0.4.0).  Overlap as in ``megatron.physics.MEGATRON_CORE``.  The loss is TransformerEngine's kernel (that file, line
84 @067f987df).  8-bit recipes gather parameters in 8 bit and keep no others (src/megatron/bridge/training/
mixed_precision.py, fp8_param_gather), which is 1 + 1 bytes as 16 bit are 2.

On GB200 and GB300 most recipes capture CUDA graphs (NVIDIA/NeMo@v2.4.0, scripts/performance/recommended_model_configs/
model_configs_gb200.csv; Megatron-Bridge, scripts/performance: cuda_graph_scope attn, moe_router, moe_preprocess;
Megatron-MoE-ModelZoo, best_practice/qwen3); dropless experts stay eager.

``time_spread``: dense models, fit part, 80 rows of two publications: 0.078; 221 other rows, of five, have 0.084."""
