"""Values of config keys that the survey of model types tries: small models, and changes of them."""

from __future__ import annotations

from typing import Any


def _each(names: str, value: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


_LAYERS = "num_hidden_layers n_layer num_layers depth encoder_layers"
_HEADS = "num_attention_heads n_head num_heads attention_heads encoder_attention_heads"
_INNER = "intermediate_size n_inner ffn_dim ffn_hidden_size dff encoder_ffn_dim"
_EXPERTS = "num_experts num_local_experts n_routed_experts moe_num_experts"

SMALL: dict[str, Any] = {
    **_each(_LAYERS, 5),
    **_each(
        "hidden_size n_embd d_model out_hidden_size embed_dim projection_hidden_size output_dim text_hidden_size", 96
    ),
    **_each("vision_hidden_size projection_dim", 96),
    **_each(_HEADS, 6),
    **_each("num_key_value_heads num_kv_heads", 2),
    "head_dim": 16,
    **_each(_INNER, 112),
    **_each("moe_intermediate_size expert_ffn_hidden_size shared_expert_intermediate_size", 40),
    **_each(_EXPERTS, 12),
    **_each("num_experts_per_tok moe_topk moe_k", 2),
    **_each("n_group topk_group n_shared_experts", 1),
    "vocab_size": 1024,
    "rotary_dim": 8,
    "q_lora_rank": 20,
    "kv_lora_rank": 16,
    **_each("pad_token_id bos_token_id eos_token_id", 1),
    "moe_layer_end_index": -1,
    **_each("linear_num_key_heads linear_num_heads index_n_heads", 3),
    **_each("linear_num_value_heads mamba_num_heads", 6),
    **_each("linear_key_head_dim linear_head_dim mamba_head_dim", 12),
    "linear_value_head_dim": 20,
    **_each("ssm_state_size state_size mamba_d_state", 24),
    "mamba_n_heads": 8,
    **_each("mamba_n_groups n_groups", 2),
    "mamba_d_ssm": 64,
    **_each("chunk_size mamba_chunk_size block_size index_topk", 16),
    "mamba_dt_rank": 9,
    **_each("moe_shared_expert_intermediate_size", 36),
    **_each("encoder_layers", 5),
    **_each("decoder_layers num_decoder_layers", 4),
    **_each("encoder_attention_heads decoder_attention_heads", 6),
    **_each("encoder_ffn_dim d_ff", 112),
    "decoder_ffn_dim": 144,
    "d_kv": 20,
    **_each("src_vocab_size tgt_vocab_size decoder_vocab_size", 1024),
    "layers_block_type": ["linear_attention", "mlp", "full_attention", "moe", "linear_attention"],
}
"""Keys of the small config, set where the class has them and still builds; in this order."""

CHANGES: dict[str, list[Any]] = {
    **_each(_LAYERS, [7]),
    **_each(_HEADS, [12]),
    **_each("num_key_value_heads num_kv_heads", [1, 3, None]),
    "head_dim": [32],
    **_each(_INNER, [200]),
    **_each("moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size", [56]),
    **_each(_EXPERTS, [20]),
    **_each("n_shared_experts num_shared_experts moe_num_shared_experts", [3]),
    **_each("first_k_dense_replace decoder_sparse_step interleave_moe_layer_step", [2]),
    **_each("moe_layer_interval moe_layer_start_index", [2]),
    "mlp_only_layers": [[1]],
    **_each("q_lora_rank kv_lora_rank", [28]),
    **_each("qk_nope_head_dim qk_rope_head_dim v_head_dim", [48]),
    "vocab_size": [1536],
    **_each("max_position_embeddings n_positions", [64]),
    **_each("dense_intermediate_size intermediate_size_mlp", [72]),
    **_each("patch_size image_size", [28]),
    "spatial_merge_size": [1],
    **_each("num_mel_bins input_dim", [72]),
    **_each("feedforward_mult conv_expansion_factor cross_attention_frequency", [3]),
    **_each("max_pos_emb dim_head output_dim conv_kernel_size context_size", [24]),
    "window_size": [20, 28],
    **_each("max_source_positions downsample_hidden_size", [64]),
    **_each("audio_merge_size downsample_factor", [2]),
    **_each("linear_num_key_heads index_n_heads", [2]),
    **_each("linear_num_value_heads linear_num_heads mamba_num_heads", [12]),
    **_each("linear_key_head_dim linear_value_head_dim linear_head_dim mamba_head_dim index_head_dim", [72]),
    **_each("linear_conv_kernel_dim conv_kernel mamba_d_conv", [3]),
    **_each("ssm_state_size state_size mamba_d_state", [40]),
    **_each("mamba_n_heads mamba_n_groups n_groups", [4]),
    **_each("mamba_d_ssm", [128, None]),
    **_each("time_step_rank mamba_dt_rank", [5, "auto"]),
    **_each("expand mamba_expand attn_layer_period expert_layer_period", [3]),
    "moe_latent_size": [28],
    "moe_shared_expert_intermediate_size": [52],
    "num_dense_layers": [1],
    "attn_layer_indices": [[1, 3]],
    "full_attn_idxs": [[0, 2]],
    "layers_block_type": [["moe", "full_attention"]],
    "indexer_types": [["full", "shared", "full", "shared", "shared"]],
    "layer_types": [["linear_attention", "full_attention", "full_attention", "linear_attention", "full_attention"]],
    "block_multiple_of": [32],
    **_each("hc_mult hc_count o_groups", [3]),
    **_each("o_lora_rank hc_lowrank gated_norm_rank index_block_size", [20]),
    **_each("num_kv_shared_layers num_mem_blocks", [3]),
    **_each("lru_width attention_hidden_size", [192]),
    **_each("dim_head dim_ff prompt_length segment_types kv_channels adapter_rank", [24]),
    "attn_config": [{"rope_theta": 10000.0, "kv_n_heads": 3}],
    "ffn_config": [{"ffn_hidden_size": 56, "moe_num_experts": 20, "moe_top_k": 2}],
    **_each("hidden_size_per_layer_input laurel_rank altup_num_inputs d_rel rel_extent conv_kernel_size", [5]),
    "num_attention_heads_per_layer": [[6, 4, 2, 6, 4]],
    "num_query_tokens": [5],
    "cross_attention_frequency": [1, 3],
    **_each("resampler_depth downsample_factor", [1]),
    **_each("resampler_n_latents output_channels num_patches", [24]),
    **_each("projector_hidden_size mlp_dim alignment_intermediate_size projection_dim", [72]),
    "global_attn_indexes": [[1, 3]],
    **_each("base_channels", [64]),
    "channel_multiplier": [[1, 2, 2]],
    **_each("num_res_blocks", [3]),
    **_each("encoder_layers decoder_layers num_decoder_layers num_sparse_encoder_layers", [3]),
    **_each("encoder_attention_heads decoder_attention_heads", [12]),
    **_each("encoder_ffn_dim decoder_ffn_dim d_ff", [200]),
    **_each("d_kv relative_attention_num_buckets embedding_size type_vocab_size", [24]),
    **_each("encoder_sparse_step num_sparse_decoder_layers", [2]),
    **_each("num_global_layers max_num_tiles", [3]),
    "cross_attention_layers": [[0, 2, 4]],
    "cross_layer_interval": [5],
    "additional_vocab_size": [2],
    "alpha_type": ["vector"],
    "feed_forward_proj": ["relu", "gated-silu"],
    **_each("src_vocab_size tgt_vocab_size decoder_vocab_size", [1536]),
    **_each("max_source_positions max_target_positions num_mel_bins", [96]),
    "attention_type": ["original_full"],
    "encoder_attention_type": ["transient-global"],
    "num_global_tokens": [8],
    **_each("codebook_vocab_size num_filters vector_quantization_hidden_dimension", [48]),
    **_each("compress num_residual_layers last_kernel_size residual_kernel_size", [4]),
    "upsampling_ratios": [[6, 4]],
    **_each("post_conv_mid_channels post_conv_out_channels", [72]),
}
"""Other values of keys, tried one at a time; every boolean key of the class is turned over besides."""


_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
_WHOLE_GROUPS = {"audio_config.intermediate_size": 384}
HOLDERS = (
    "text_config",
    "vision_config",
    "audio_config",
    "qformer_config",
    "perceiver_config",
    "vq_config",
    "high_res_vision_config",
    "adapter_config",
    "encoder_config",
    "projector_config",
    "encoder",
    "decoder",
    "encoder.text_config",
    "codec_config",
)
"""Nested configs whose keys are set and changed too."""


def part_of(config: Any, path: str) -> Any:
    """The nested config at a path of names; None where there is none."""
    for name in path.split("."):
        config = getattr(config, name, None)
    return config


_ROPE_BY_KIND = dict.fromkeys(("full_attention", "sliding_attention"), _ROPE)

_QFORMER = {"projector_config.encoder_hidden_size": 96}
_CROSSED = {"decoder.is_decoder": True, "decoder.add_cross_attention": True}
LISTED: dict[str, dict[str, Any]] = {
    "jetmoe": {"kv_channels": 16},
    "zamba2": {
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid", "hybrid"],
        "num_hidden_layers": 5,
        "n_mamba_heads": 4,
        "adapter_rank": 12,
    },
    "zamba": {
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid", "hybrid"],
        "num_hidden_layers": 5,
    },
    "dbrx": {
        "attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2},
        "ffn_config": {"ffn_hidden_size": 40, "moe_num_experts": 12, "moe_top_k": 2},
    },
    "bailing_hybrid": {"layer_group_size": 3},
    "deepseek_v4": {
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
        "o_lora_rank": 24,
        "o_groups": 2,
    },
    "gemma4_text": {"top_k_experts": 2},
    "gemma4": {
        "vision_config": {"model_type": "gemma4_vision", "num_key_value_heads": 6, "position_embedding_size": 64},
        "audio_config": {"model_type": "gemma4_audio", "hidden_size": 96, "num_hidden_layers": 3},
    },
    "gemma4_unified": {
        "vision_config": {"model_type": "gemma4_unified_vision", "mm_embed_dim": 96, "output_proj_dims": 96},
        "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 40},
    },
    "dots3_note": {
        "text_config.hidden_size": 96,
        "vision_config.adapter_out_dim": 96,
        "audio_config.adapter_out_dim": 96,
    },
    "fun_asr_nano": {
        "text_config.hidden_size": 96,
        "adaptor_config": {
            "hidden_size": 96,
            "intermediate_size": 24,
            "num_attention_heads": 4,
            "num_hidden_layers": 3,
        },
    },
    "phi4_multimodal": {
        "audio_config.hidden_size": 96,
        "audio_config.num_attention_heads": 6,
        "audio_config.ext_pw_out_channel": 96,
        "audio_config.depthwise_separable_out_channel": 96,
        "audio_config.num_blocks": 3,
    },
    "muse_glimmer": {"out_hidden_size": 384},
    "muse_spark": {"out_hidden_size": 384, "text_config.hidden_size": 96, "audio_config.out_hidden_size": 96},
    "step3p7": {
        "text_config.layer_types": ["full_attention", *["sliding_attention"] * 3, "full_attention"],
        "text_config.sliding_window": 16,
        "text_config.num_sliding_attention_heads": 12,
    },
    "qwen4_exp": {
        "text_config.indexer_n_heads": 4,
        "text_config.indexer_kv_heads": 1,
        "text_config.indexer_head_dim": 16,
        "text_config.indexer_budget": 16,
        "text_config.indexer_compress_ratio": 4,
        "vision_config.out_hidden_size": 96,
    },
    "gemma3n_text": {"num_kv_shared_layers": 10},
    "inkling_text": {"swa_num_key_value_heads": 2, "swa_head_dim": 16, "swa_num_attention_heads": 4},
    "inkling2_text": {"swa_num_key_value_heads": 2, "swa_head_dim": 16, "swa_num_attention_heads": 4},
    "lfm3": {"layer_types": ["conv", "sliding_attention", "full_attention", "conv", "full_attention"]},
    "hy_v4": {"indexer_types": ["full", "full", "shared", "shared", "full"]},
    "minimax_m3_vl_text": {
        "layer_types": ["full_attention", *["minimax_m3_sparse"] * 3, "full_attention"],
        "mlp_layer_types": ["dense", *["sparse"] * 4],
    },
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
        "indexer_budget": 16,
        "indexer_compress_ratio": 4,
    },
    "mimo_v2_flash": {"num_key_value_heads": 1},
    "granite_speech": _QFORMER,
    "granite_speech_plus": _QFORMER,
    "mllama": {
        "text_config.cross_attention_layers": [1, 3],
        "vision_config.intermediate_layers_indices": [0, 1, 2, 3, 4],
        "vision_config.vision_output_dim": 576,
    },
    "encoder-decoder": _CROSSED,
    "vision-encoder-decoder": _CROSSED,
    "florence2": {
        "vision_config.projection_dim": 96,
        "vision_config.depths": [1, 1, 2, 1],
        "vision_config.embed_dim": [24, 48, 72, 96],
        "vision_config.num_heads": [2, 2, 3, 3],
        "vision_config.num_groups": [2, 4, 3, 3],
    },
    "kyutai_speech_to_text": {
        "codec_config.hidden_size": 96,
        "codec_config.num_attention_heads": 6,
        "codec_config.upsample_groups": 12,
    },
    "pix2struct": {"text_config.d_kv": 16},
    "pp_formulanet": {"vision_config.decoder_hidden_size": 96},
    "led": {"attention_window": 8},
    "longt5": {"local_radius": 15},
    "pegasus_x": {"block_size": 16, "num_global_tokens": 4, "stagger_local_blocks": False},
    "glmasr": _WHOLE_GROUPS,
    "voxtral": {**_WHOLE_GROUPS, "audio_config.encoder_ffn_dim": 384},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"]},
    "chameleon": {"vocabulary_map": {"<image>": 8}},
    "cohere_compass": {"text_config.rope_parameters": _ROPE_BY_KIND},
    "cohere_compass_text": {"rope_parameters": _ROPE_BY_KIND},
    "deepseek_ocr2": {
        "text_config.mlp_layer_types": ["dense", "sparse", "sparse", "sparse", "sparse"],
        "text_config.num_experts_per_tok": 2,
        "vision_config.encoder_config": {"hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2},
    },
    "emu3": {
        "vocabulary_map": {"<image>": 8, "<|extra_200|>": 9},
        "vq_config.hidden_size": 1024,
        "vq_config.num_attention_heads": 1,
    },
    "granite4_vision": {"downsample_rate": "1/2", "deepstack_layer_map": [[1, 0], [2, 1]]},
    "nemotron_h_omni": {"vision_config.video_temporal_patch_size": 2},
    "hunyuan_vl": {"text_config.rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
}
"""Keys without which a class does not build, or does not run."""
