"""One ``model_type`` judged: the class on the meta device against what our reader makes of its ``config.json``."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any

from benchmarks.model_type_flops import flops_ratio


def _each(names: str, value: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


_LAYERS = "num_hidden_layers n_layer num_layers depth"
_HEADS = "num_attention_heads n_head num_heads attention_heads"
_INNER = "intermediate_size n_inner ffn_dim ffn_hidden_size dff"
_EXPERTS = "num_experts num_local_experts n_routed_experts moe_num_experts"

SMALL: dict[str, Any] = {
    **_each(_LAYERS, 5),
    **_each("hidden_size n_embd d_model out_hidden_size embed_dim projection_hidden_size", 96),
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
}
"""Other values of keys, tried one at a time; every boolean key of the class is turned over besides."""


_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LISTED: dict[str, dict[str, Any]] = {
    "cohere_compass_text": {"rope_parameters": {"full_attention": _ROPE, "sliding_attention": _ROPE}},
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
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"]},
}
"""Keys without which a class does not build."""


def judged(model_type: str, class_name: str) -> dict[str, Any]:
    """The verdict of one type.  Never raises: what goes wrong is the verdict's reason."""
    from planner.model.hf_config.unmodelled import UNMODELLED

    warnings.simplefilter("ignore")
    if model_type in UNMODELLED:
        return refused(model_type, class_name)
    try:
        small, default = small_config(model_type, class_name)
    except Exception as error:
        return {"verdict": "not built", "reason": f"{type(error).__name__}: {str(error)[:160]}"}
    cases = [("small", small)] + ([("default", default)] if default is not None else [])
    known, read = compared(class_name, small)
    if isinstance(read, str):
        return {"verdict": "refused", "reason": read, "small_parameters": known}
    cases += changed_configs(small)
    counts: dict[str, Any] = {"cases": 0, "refused_cases": []}
    for label, config in cases:
        try:
            known, read = compared(class_name, config)
        except Exception:  # the class does not build this one: nothing to compare
            continue
        if isinstance(read, str):
            counts["refused_cases"].append(f"{label}: {read}"[:200])
        elif read != known:
            return {"verdict": "off", "by": read - known, "case": label, "reason": f"{label}: off by {read - known:,}"}
        else:
            counts["cases"] += 1
            if label == "default":
                counts["parameters"] = known
    return {"verdict": "exact", **counts, "flops": flops_ratio(class_name, small, written)}


def refused(model_type: str, class_name: str) -> dict[str, Any]:
    """The reader's reason, and whether the class builds its default config."""
    try:
        config = made(model_type, {})
        known, reason = compared(class_name, config)
        return {"verdict": "refused", "reason": reason, "parameters": known}
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:120]}"
        return {"verdict": "refused", "reason": _reason(model_type), "not_built": said}


def _reason(model_type: str) -> str:
    from planner.model.hf_config import model_from_hf_config
    from profiles.errors import DocumentInvalid

    try:
        model_from_hf_config({"model_type": model_type}, "surveyed", "config.json")
    except DocumentInvalid as error:
        return error.what
    raise AssertionError(f"{model_type} is read")


def build(class_name: str, config: Any) -> Any:
    """The module on the meta device."""
    import torch
    import transformers

    model_class = getattr(transformers, class_name)
    with torch.device("meta"):
        return model_class._from_config(copy.deepcopy(config))


def written(config: Any) -> dict[str, Any]:
    """The ``config.json`` that ``save_pretrained`` writes."""
    read: dict[str, Any] = json.loads(config.to_json_string())
    return read


def compared(class_name: str, config: Any) -> tuple[int, int | str]:
    """The module's count, and ours or why our reader refuses the config."""
    from planner.model.hf_config import model_from_hf_config
    from planner.model.parameters import total_parameters
    from profiles.errors import MeshwrightError
    from profiles.validation import FindingsInvalid

    known = sum(parameter.numel() for parameter in build(class_name, config).parameters())
    try:
        return known, total_parameters(model_from_hf_config(written(config), "surveyed", "config.json"))
    except FindingsInvalid as error:
        return known, f"{error.findings[0].pointer.lstrip('/')}: {error.findings[0].what}"
    except MeshwrightError as error:
        return known, error.what


def made(model_type: str, changes: dict[str, Any]) -> Any:
    """The config class with keys changed; ``text_config.x`` reaches a nested one."""
    from transformers import AutoConfig

    top: dict[str, Any] = {}
    for path, value in changes.items():
        *holders, key = path.split(".")
        inner = top
        for holder in holders:
            inner = inner.setdefault(holder, {"model_type": _nested_type(model_type, holder)})
        inner[key] = value
    return AutoConfig.for_model(model_type, **top)


def _nested_type(model_type: str, holder: str) -> str:
    from transformers import AutoConfig

    return str(getattr(AutoConfig.for_model(model_type), holder).model_type)


def small_config(model_type: str, class_name: str) -> tuple[Any, Any | None]:
    """A small config that builds (raises what the class raises if none does), and the default one if it builds."""
    default = made(model_type, {})
    try:
        build(class_name, default)
        builds = True
    except Exception:
        builds = False
    changes: dict[str, Any] = dict(LISTED.get(model_type, {}))
    wanted = _paths(default) | changes
    try:  # all at once, then key by key
        build(class_name, made(model_type, wanted))
        changes = wanted
    except Exception:
        for path, value in wanted.items():
            trial = {**changes, path: value}
            try:
                build(class_name, made(model_type, trial))
            except Exception:
                if builds:
                    continue
            changes = trial
    small = made(model_type, changes)
    small._survey = (model_type, changes)
    build(class_name, small)
    return small, default if builds else None


def _paths(config: Any) -> dict[str, Any]:
    holders = [("", config)] + [
        (f"{name}.", getattr(config, name))
        for name in ("text_config", "vision_config")
        if getattr(getattr(config, name, None), "model_type", "")
    ]
    return {
        f"{prefix}{key}": value
        for prefix, holder in holders
        for key, value in SMALL.items()
        if _has(holder, key) and not (key == "vocab_size" and prefix == "vision_config.")
    }


def _has(holder: Any, key: str) -> bool:
    """Whether the config has the key; one that differs from layer to layer refuses to be asked for."""
    try:
        return hasattr(holder, key)
    except Exception:
        return True


def changed_configs(small: Any) -> list[tuple[str, Any]]:
    """The small config with one key changed."""
    model_type, changes = small._survey
    found = []
    for prefix, holder in [
        ("", small),
        *((f"{name}.", getattr(small, name, None)) for name in ("text_config", "vision_config")),
    ]:
        if holder is None:
            continue
        for key, value in holder.to_dict().items():
            others = CHANGES.get(key, [])
            if isinstance(value, bool) and key not in ("is_decoder", "is_encoder_decoder", "return_dict"):
                others = [not value]
            for other in others:
                try:
                    config = made(model_type, {**changes, f"{prefix}{key}": other})
                except Exception:
                    continue
                found.append((f"{prefix}{key}={other}", config))
    return found
