"""Language models inside the configs of models with a vision tower."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_rules import (
    after_max_window_layers,
    dense_first,
    listed,
    qwen_steps,
    reference_windows,
    switched_windows,
)
from planner.model.hf_config.tables.bases import DEEPSEEK_EXPERTS, OLDER
from planner.model.hf_config.tables.later_texts import LATER_TEXTS

_DEEPSEEK_HEADS = Decoder(
    mlp_bias="mlp_bias",
    experts=Experts(
        dense_first(1), count="n_routed_experts", shared="n_shared_experts", shared_bias="mlp_bias", groups=True
    ),
)

NESTED: dict[str, Decoder] = {
    **LATER_TEXTS,
    "chameleon": Decoder(head_dim=None, even_heads=True, qk_norm="full_width", qk_norm_bias=True, mlp_bias="mlp_bias"),
    "deepseek_ocr2_text": _DEEPSEEK_HEADS,
    "git": replace(
        OLDER,
        norm_placement="post_residual",
        position="learned",
        learned_positions=True,
        final_norm=False,
        head_bias=True,
    ),
    "molmo2_text": Decoder(output_bias=False, qk_norm="per_head"),
    "unlimited_ocr_text": replace(_DEEPSEEK_HEADS, windows=reference_windows),
    "cosmos3_edge_text": Decoder(gated=False, mlp_bias="mlp_bias"),
    "emu3_text_model": Decoder(mlp_bias="mlp_bias"),
    "glm4v_text": Decoder(qkv_bias=True, output_bias=False, num_norms=4, head_dim=None),
    "glm4v_moe_text": Decoder(output_bias=False, head_dim=None, experts=DEEPSEEK_EXPERTS),
    "qwen2_vl_text": Decoder(qkv_bias=True, output_bias=False, head_dim=None, windows=switched_windows),
    "qwen2_5_omni_text": Decoder(qkv_bias=True, output_bias=False, head_dim=None, windows=after_max_window_layers),
    "qwen3_omni_moe_text": Decoder(qk_norm="per_head", experts=Experts(qwen_steps)),
    "glm_ocr_text": Decoder(qkv_bias=False, output_bias=False, num_norms=4),
    "granite4_vision_text": Decoder(mlp_bias="mlp_bias"),
    "granite_docling_text": Decoder(mlp_bias="mlp_bias"),
    "hunyuan_vl_text": Decoder(qk_norm="per_head"),
    "paddleocr_vl_text": Decoder(qkv_bias="use_bias", output_bias="use_bias", mlp_bias="use_bias", windows=listed),
    "qwen3_vl_text": Decoder(qk_norm="per_head"),
    "qwen3_vl_moe_text": Decoder(qk_norm="per_head", experts=Experts(qwen_steps)),
}
