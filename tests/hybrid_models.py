"""Small models with every token mixer, as their families' configs give them."""

from __future__ import annotations

from typing import Any

from planner.model.hf_config import model_from_hf_config
from planner.model.spec import ModelSpec

_ENDS = {"vocab_size": 1024, "hidden_size": 256, "max_position_embeddings": 8192}
_DELTA = {
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
}
_MIXTURE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
CONFIGS: dict[str, dict[str, Any]] = {
    "qwen3_next": {
        **_ENDS,
        **_DELTA,
        **_MIXTURE,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "shared_expert_intermediate_size": 128,
    },
    "nemotron_h": {
        **_ENDS,
        "hybrid_override_pattern": "MEM*-MEM",
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "intermediate_size": 512,
        "mamba_num_heads": 8,
        "mamba_head_dim": 32,
        "ssm_state_size": 16,
        "n_groups": 4,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "moe_shared_expert_intermediate_size": 128,
    },
    "deepseek_v32": {
        **_ENDS,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "intermediate_size": 512,
        "moe_intermediate_size": 128,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "q_lora_rank": 64,
        "kv_lora_rank": 32,
        "index_n_heads": 4,
        "index_topk": 128,
        "first_k_dense_replace": 1,
    },
    "kimi_linear": {
        **_ENDS,
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "linear_num_heads": 8,
        "linear_head_dim": 32,
        "kv_lora_rank": 32,
        "num_experts": 8,
        "num_experts_per_token": 2,
        "moe_intermediate_size": 128,
        "intermediate_size": 512,
    },
    "falcon_h1": {
        **_ENDS,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "intermediate_size": 512,
        "mamba_d_ssm": 256,
        "mamba_n_heads": 8,
        "mamba_d_state": 16,
    },
    "jamba": {
        **_ENDS,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "intermediate_size": 128,
        "num_experts": 8,
        "num_experts_per_tok": 2,
    },
    "minimax": {**_ENDS, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32},
    "lfm2": {
        **_ENDS,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "layer_types": ["conv", "full_attention", "conv", "conv"],
    },
    "mamba2": {
        "vocab_size": 1024,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_heads": 8,
        "head_dim": 64,
        "state_size": 16,
        "n_groups": 4,
    },
}


def hybrid(family: str, **changes: Any) -> ModelSpec:
    """A small model of a family, with keys of its config changed."""
    return model_from_hf_config({"model_type": family, **CONFIGS[family], **changes}, f"small-{family}", "config.json")
