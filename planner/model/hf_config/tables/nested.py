"""Language models inside the configs of models with a vision tower."""

from __future__ import annotations

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_rules import after_max_window_layers, dense_first, qwen_steps

NESTED: dict[str, Decoder] = {
    "glm4v_text": Decoder(qkv_bias=True, output_bias=False, num_norms=4, head_dim=None),
    "glm4v_moe_text": Decoder(
        output_bias=False,
        head_dim=None,
        experts=Experts(
            dense_first("first_k_dense_replace"),
            count="n_routed_experts",
            shared="n_shared_experts",
            score_function="sigmoid",
            groups=True,
        ),
    ),
    "qwen2_5_omni_text": Decoder(qkv_bias=True, output_bias=False, head_dim=None, windows=after_max_window_layers),
    "qwen3_omni_moe_text": Decoder(qk_norm="per_head", experts=Experts(qwen_steps)),
    "qwen3_vl_text": Decoder(qk_norm="per_head"),
    "qwen3_vl_moe_text": Decoder(qk_norm="per_head", experts=Experts(qwen_steps, count="num_local_experts")),
}
