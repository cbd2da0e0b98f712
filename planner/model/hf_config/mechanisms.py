"""Mechanisms that a ``ModelSpec`` does not hold, by the words with which configs ask for them.

A config that asks for one is refused with the mechanism's name: its plan would be another model's.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.model.hf_config.reader import ConfigReader

LINEAR = "gated DeltaNet or another linear attention"
DSA = "indexed sparse attention (DSA)"
SSM = "state-space layers (Mamba)"
HYPER = "hyper-connections"
SHARED_KV = "key-values shared between layers"

LAYER_KINDS: Mapping[str, str] = {
    kind: f"layers of kind {kind} ({mechanism}) are not modelled"
    for kind, mechanism in {
        "linear_attention": LINEAR,
        "indexed_attention": DSA,
        "deepseek_sparse_attention": DSA,
        "qwen_sparse_attention": DSA,
        "minimax_m3_sparse": "block-sparse attention",
        "compressed_sparse_attention": "compressed sparse attention",
        "heavily_compressed_attention": "compressed sparse attention",
        "chunked_attention": "attention within chunks",
        "conv": "short convolutions",
        "mamba": SSM,
        "hybrid": "attention beside a convolution or state space",
        "hybrid_sliding": "attention beside a convolution or state space",
        "moe": "experts in the place of attention",
    }.items()
}

KEYS: Mapping[str, str] = {
    **dict.fromkeys(("index_topk", "index_n_heads", "index_head_dim", "index_topk_blocks", "indexer_types"), DSA),
    **dict.fromkeys(("hc_mult", "hc_count"), HYPER),
    **dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads", "linear_attn_config"), LINEAR),
    **dict.fromkeys(("ssm_state_size", "mamba_d_state", "mamba_num_heads", "mamba_n_heads", "state_size"), SSM),
    **dict.fromkeys(("layers_block_type", "hybrid_override_pattern"), SSM),
    **dict.fromkeys(("num_kv_shared_layers", "kv_source_layers"), SHARED_KV),
    "n_layers_per_attn_res_block": "attention residuals",
    "zero_expert_num": "experts that compute nothing",
    "moe_latent_size": "experts on a latent width",
    **dict.fromkeys(("o_groups", "o_lora_rank"), "a grouped low-rank output projection"),
    **dict.fromkeys(("ngram_vocab_size_base", "ple_layer_ids"), "n-gram embeddings"),
    **dict.fromkeys(("hidden_size_per_layer_input", "laurel_rank", "altup_num_inputs"), "inputs of every layer"),
    **dict.fromkeys(
        ("cross_attention_layers", "add_cross_attention", "cross_attention_hidden_size"), "cross-attention"
    ),
    **dict.fromkeys(("attn_output_gate", "attention_output_gate", "gating"), "a gate on the output of attention"),
    "num_attention_heads_per_layer": "another number of heads in each layer",
    "num_heads_per_layer": "another number of heads in each layer",
    "block_configs": "layers that differ one by one",
}
"""Config key -> what it switches on.  Refused where it is on and the family's reader does not read it."""

STRUCTURAL = frozenset(
    {
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "moe_num_experts",
        "moe_intermediate_size",
        "n_shared_experts",
        "num_shared_experts",
        "moe_num_shared_experts",
        "shared_expert_intermediate_size",
        "first_k_dense_replace",
        "q_lora_rank",
        "kv_lora_rank",
        "attention_bias",
        "qkv_bias",
        "use_qkv_bias",
        "mlp_bias",
        "attention_out_bias",
        "lm_head_bias",
        "use_qk_norm",
        "qk_layernorm",
        "embedding_size",
        "word_embed_proj_dim",
        "mlp_only_layers",
        "v_head_dim",
    }
)
"""Keys that change the number of parameters in the families that read them."""


def refuse_unread(reader: ConfigReader) -> None:
    """Record a finding for every key that asks for structure and that nobody has read."""
    for key, value in reader.unread():
        off = value is None or value is False or value in (0, [], {}, "")
        if off:
            continue
        if key in KEYS:
            reader.refuse(key, f"asks for {KEYS[key]}, which is not modelled", "describe the model in model YAML")
        elif key in ("layer_types", "mlp_layer_types"):
            _refuse_kinds(reader, key, value)
        elif key in STRUCTURAL and not (key == "num_experts" and value == 1):
            hint = f"remove {key} if the model has no such part"
            reader.refuse(key, "changes the structure of a layer and is not read for this model_type", hint)


def _refuse_kinds(reader: ConfigReader, key: str, value: object) -> None:
    plain = {"full_attention", "sliding_attention", "dense"}
    kinds = {str(kind) for kind in value} - plain if isinstance(value, list) else set()
    for kind in sorted(kinds):
        said = LAYER_KINDS.get(kind, f"layers of kind {kind[:40]!r} are not read for this model_type")
        reader.refuse(key, f"holds {kind[:40]!r}: {said}")
