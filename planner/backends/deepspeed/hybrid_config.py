"""``config.json`` of families with other token mixers than attention: what ``model_config`` writes for them.

Keys follow the ``transformers`` 5.23 classes; a model that does not read back the same is refused by ``model_config``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.backends.rules.rule import mixture, used_kinds
from planner.backends.rules.token_mixers import softmax_attention
from planner.model.mixers.delta_rule import DeltaRuleSpec
from planner.model.mixers.mamba import Mamba2Spec
from planner.model.mixers.short_conv import ShortConvSpec
from planner.model.spec import AttentionSpec, LayerSpec, ModelSpec, MoeSpec
from profiles.errors import DocumentInvalid


def _base(spec: ModelSpec) -> dict[str, Any]:
    attention = softmax_attention(spec)
    found: dict[str, Any] = {
        "model_type": spec.family,
        "hidden_size": spec.hidden_size,
        "vocab_size": spec.vocab_size,
        "num_hidden_layers": spec.num_layers,
        "max_position_embeddings": spec.max_sequence_length,
        "tie_word_embeddings": spec.tie_embeddings,
        "hidden_act": spec.activation_function,
        "rms_norm_eps": spec.norm_epsilon,
        "use_cache": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    if attention is None:
        return found
    rotated = (attention.qk_rope_head_dim or attention.head_dim) / attention.head_dim
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": spec.rotary_base}
    if attention.kind == "gqa" and spec.position == "rope":
        rope["partial_rotary_factor"] = rotated
    return found | {
        "num_attention_heads": attention.num_heads,
        "num_key_value_heads": attention.num_kv_heads,
        "head_dim": attention.head_dim,
        "attention_bias": attention.qkv_bias,
        "rope_parameters": rope,
    }


def _layers(spec: ModelSpec) -> list[LayerSpec]:
    return [spec.layer_kinds[kind] for kind in spec.layer_kind_sequence()]


def _dense_width(spec: ModelSpec) -> int:
    return next((kind.mlp.intermediate_size for kind in used_kinds(spec) if kind.mlp), spec.hidden_size)


def _types(spec: ModelSpec) -> list[str]:
    softmax = [isinstance(each.attention, AttentionSpec) for each in _layers(spec)]
    return ["full_attention" if each else "linear_attention" for each in softmax]


def _delta(spec: ModelSpec) -> DeltaRuleSpec:
    found = (kind.attention for kind in used_kinds(spec) if isinstance(kind.attention, DeltaRuleSpec))
    delta = next(found, None)
    if delta is None:
        raise DocumentInvalid(f"a {spec.family} without linear attention is not written", where="model_config.json")
    return delta


def _qwen(spec: ModelSpec) -> dict[str, Any]:
    """Qwen3-Next and Qwen3.5, and Olmo Hybrid, which has the same keys without experts."""
    delta = _delta(spec)
    config = _base(spec) | {
        "intermediate_size": _dense_width(spec),
        "layer_types": _types(spec),
        "linear_num_key_heads": delta.num_key_heads,
        "linear_num_value_heads": delta.num_value_heads,
        "linear_key_head_dim": delta.key_head_dim,
        "linear_value_head_dim": delta.value_head_dim,
        "linear_conv_kernel_dim": delta.conv_kernel,
    }
    moe = mixture(spec)
    if moe is not None:
        config |= {
            "num_experts": moe.num_experts,
            "num_experts_per_tok": moe.top_k,
            "moe_intermediate_size": moe.expert_intermediate_size,
            "shared_expert_intermediate_size": moe.shared_intermediate_size,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [index for index, each in enumerate(_layers(spec)) if each.moe is None],
        }
    return config


def _routed(moe: MoeSpec) -> dict[str, Any]:
    return {
        "n_routed_experts": moe.num_experts,
        "num_experts_per_tok": moe.top_k,
        "moe_intermediate_size": moe.expert_intermediate_size,
        "n_group": moe.num_groups,
        "topk_group": moe.top_k_groups,
    }


def _latent(spec: ModelSpec) -> dict[str, Any]:
    """Keys of latent attention and of experts behind some dense layers."""
    attention, moe = softmax_attention(spec), mixture(spec)
    if attention is None or moe is None:
        return {}
    rotated = attention.qk_rope_head_dim or 0
    return {
        "q_lora_rank": attention.q_lora_rank,
        "kv_lora_rank": attention.kv_lora_rank,
        "qk_rope_head_dim": rotated,
        "qk_nope_head_dim": attention.head_dim - rotated,
        "v_head_dim": attention.v_head_dim,
        "intermediate_size": _dense_width(spec),
        "n_shared_experts": moe.shared_intermediate_size // moe.expert_intermediate_size,
        "mlp_layer_types": ["dense" if each.moe is None else "sparse" for each in _layers(spec)],
        **_routed(moe),
    }


def _indexed(spec: ModelSpec) -> dict[str, Any]:
    attention = softmax_attention(spec)
    config = _base(spec) | _latent(spec)
    del config["head_dim"]
    if attention is None or attention.indexer is None:
        return config
    config |= {
        "index_n_heads": attention.indexer.num_heads,
        "index_head_dim": attention.indexer.head_dim,
        "index_topk": attention.indexer.top_k,
    }
    if spec.family == "glm_moe_dsa":
        chosen = [each.attention.indexer for each in _layers(spec)]
        config["indexer_types"] = ["shared" if each is None or each.reuses_choice else "full" for each in chosen]
    return config


def _kimi(spec: ModelSpec) -> dict[str, Any]:
    delta, moe = _delta(spec), mixture(spec)
    config = _base(spec) | _latent(spec)
    for key in ("head_dim", "n_routed_experts"):
        config.pop(key, None)
    return config | {
        "num_local_experts": moe.num_experts if moe else 0,
        "layer_types": _types(spec),
        "linear_num_heads": delta.num_value_heads,
        "linear_head_dim": delta.value_head_dim,
        "linear_conv_kernel_dim": delta.conv_kernel,
    }


def _nemotron(spec: ModelSpec) -> dict[str, Any]:
    words = {"mamba2": "linear_attention", "gqa": "full_attention"}
    blocks = [words.get(each.attention.kind) or ("mlp" if each.moe is None else "moe") for each in _layers(spec)]
    config = _base(spec) | {
        "layers_block_type": blocks,
        "mlp_hidden_act": spec.activation_function,
        "layer_norm_epsilon": spec.norm_epsilon,
        "intermediate_size": _dense_width(spec),
        "mlp_bias": any(kind.mlp.bias for kind in used_kinds(spec) if kind.mlp),
    }
    for key in ("num_hidden_layers", "hidden_act", "rms_norm_eps", "attention_bias", "rope_parameters"):
        config.pop(key, None)
    mamba = next((kind.attention for kind in used_kinds(spec) if isinstance(kind.attention, Mamba2Spec)), None)
    if mamba is not None:
        config |= {
            "mamba_num_heads": mamba.num_heads,
            "mamba_head_dim": mamba.head_dim,
            "ssm_state_size": mamba.state_size,
            "n_groups": mamba.num_groups,
            "conv_kernel": mamba.conv_kernel,
            "chunk_size": mamba.chunk_size,
            "use_conv_bias": mamba.conv_bias,
            "use_bias": mamba.projection_bias,
        }
    moe = mixture(spec)
    if moe is not None:
        config |= _routed(moe) | {
            "moe_shared_expert_intermediate_size": moe.shared_intermediate_size,
            "moe_latent_size": moe.latent_size,
        }
    return config


def _lfm2(spec: ModelSpec) -> dict[str, Any]:
    conv = next((kind.attention for kind in used_kinds(spec) if isinstance(kind.attention, ShortConvSpec)), None)
    types = ["full_attention" if isinstance(each.attention, AttentionSpec) else "conv" for each in _layers(spec)]
    config = _base(spec) | {
        "norm_eps": spec.norm_epsilon,
        "layer_types": types,
        "conv_L_cache": conv.conv_kernel if conv else 3,
        "conv_bias": conv is not None and conv.bias,
        "intermediate_size": _dense_width(spec),
        "block_auto_adjust_ff_dim": False,
    }
    for key in ("hidden_act", "rms_norm_eps", "attention_bias", "head_dim"):
        config.pop(key, None)
    return config


HYBRID_WRITERS: dict[str, Callable[[ModelSpec], dict[str, Any]]] = {
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"), _qwen),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), _indexed),
    "kimi_linear": _kimi,
    "lfm2": _lfm2,
    "nemotron_h": _nemotron,
}
"""``family`` -> its writer."""
