"""The Hugging Face ``config.json`` that builds the planned model.

The inverse of ``planner.model.hf_config``: what is written here must read back as the same model, layer by layer
(``buildable``); a model that does not survive the round trip cannot be trained by the emitted script.  Keys follow
``transformers`` 5 (rotary settings under ``rope_parameters``).  Of what a ``ModelSpec`` does not hold, routing and rope
scaling are those of ``rules.training_recipe`` where it knows them; the rest (dropout) takes the class's default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from planner.backends.deepspeed.denoiser_config import denoiser_config
from planner.backends.deepspeed.hybrid_config import HYBRID_WRITERS
from planner.backends.deepspeed.seq2seq_config import SEQ2SEQ_WRITERS
from planner.backends.deepspeed.vision_config import TEXT_FAMILIES, vision_language_config
from planner.backends.rules.rule import used_kinds
from planner.backends.rules.training_recipe import Routing, routing, stretch
from planner.model.load import model_from_data
from planner.model.spec import LayerSpec, ModelSpec, MoeSpec, TokenMixer
from profiles.errors import DocumentInvalid

_WHERE = "model_config.json"


_UNFUSED = {
    # transformers 5.23 models/deepseek_v4/modeling_deepseek_v4.py, DeepseekV4PreTrainedModel
    "deepseek_v4": "the transformers class of deepseek_v4 runs attention without a fused kernel (heads of 512 features)"
    " and keeps all scores, which is not predicted",
}
"""Families that transformers builds, but runs in a way that no prediction here describes."""


def model_config(spec: ModelSpec) -> dict[str, Any]:
    """The config of the model's own class of ``transformers``, or of ``diffusers``.

    Raises DocumentInvalid for a family without a writer.
    """
    if spec.denoiser is not None:
        return denoiser_config(spec.denoiser)
    if spec.traced is not None:
        config: dict[str, Any] = json.loads(spec.traced.config)
        return config
    if spec.vision is not None and spec.family in TEXT_FAMILIES:
        alone = spec.model_copy(update={"family": TEXT_FAMILIES[spec.family], "vision": None})
        return vision_language_config(spec, spec.vision, model_config(alone))
    writer = _WRITERS.get(spec.family)
    if spec.family in _UNFUSED:
        raise DocumentInvalid(f"{_UNFUSED[spec.family]}; --backend unrestricted plans it for study", where=_WHERE)
    if writer is None:
        several = spec.encoder is not None
        hint = f"one of {', '.join(name for name in sorted(_WRITERS) if (name in SEQ2SEQ_WRITERS) == several)}"
        raise DocumentInvalid(f"no transformers class is known for the family {spec.family!r}", where=_WHERE, hint=hint)
    return writer(spec)


@lru_cache(maxsize=16)  # a search asks for every strategy of one model; building and importing a config takes 3 ms
def why_not_buildable(spec: ModelSpec) -> str | None:
    """Why the emitted script cannot build the model, or None when it can."""
    if spec.traced is not None:
        if spec.traced.auto_class == "AutoModelForCausalLM":
            return None
        return f"the script builds AutoModelForCausalLM, and {spec.traced.class_name} is an {spec.traced.auto_class}"
    try:
        again = model_from_data(model_config(spec), spec.name, _WHERE)
    except DocumentInvalid as error:
        return error.what + (f" ({error.hint})" if error.hint else "")
    differing = [name for name, value in _identity(spec).items() if _identity(again)[name] != value]
    if differing:
        library = "diffusers" if spec.denoiser else "transformers"
        return f"the {library} class {spec.family} cannot be set to this model: {', '.join(differing)} differ"
    return None


def _identity(spec: ModelSpec) -> dict[str, Any]:
    """What must survive, without names, and with layers in order instead of numbered kinds."""
    data = {name: getattr(spec, name) for name in type(spec).model_fields}
    for name in ("name", "family", "layer_kinds", "layer_runs", "mtp"):
        del data[name]
    data["layers"] = tuple(spec.layer_kinds[kind] for kind in spec.layer_kind_sequence())
    return data


def _base(spec: ModelSpec) -> dict[str, Any]:
    return {
        "model_type": spec.family,
        "hidden_size": spec.hidden_size,
        "vocab_size": spec.vocab_size,
        "num_hidden_layers": spec.num_layers,
        "max_position_embeddings": spec.max_sequence_length,
        "tie_word_embeddings": spec.tie_embeddings,
        "hidden_act": spec.activation_function,
        "use_cache": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def _rope(spec: ModelSpec, attention: TokenMixer) -> dict[str, Any]:
    """``rope_parameters`` (transformers 5.23 modeling_rope_utils.py: _compute_yarn_parameters, _compute_llama3_*)."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": spec.rotary_base}
    found = stretch(spec)
    if found is not None:
        rope |= {
            "rope_type": found.kind,
            "factor": found.factor,
            "original_max_position_embeddings": found.original_positions,
        }
        if found.kind == "llama3":
            rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
        else:
            rope |= {"beta_fast": found.beta_fast, "beta_slow": 1.0}
            rope |= {"mscale": found.mscale, "mscale_all_dim": found.mscale_all_dim}
    if attention.kind == "gqa" and attention.qk_rope_head_dim is not None:
        rope["partial_rotary_factor"] = attention.qk_rope_head_dim / attention.head_dim
    return rope


def _grouped(spec: ModelSpec) -> dict[str, Any]:
    """Keys of the RMS-norm, rotary, grouped-query classes."""
    attention = used_kinds(spec)[0].attention
    return _base(spec) | {
        "num_attention_heads": attention.num_heads,
        "num_key_value_heads": attention.num_kv_heads,
        "head_dim": attention.head_dim,
        "attention_bias": attention.qkv_bias,
        "rms_norm_eps": spec.norm_epsilon,
        "rope_parameters": _rope(spec, attention),
    }


def _windows(spec: ModelSpec) -> dict[str, Any]:
    """Sliding windows, one entry a layer, in the way of the Qwen classes."""
    windows = [spec.layer_kinds[kind].attention.sliding_window for kind in spec.layer_kind_sequence()]
    if not any(windows):
        return {"use_sliding_window": False}
    return {
        "use_sliding_window": True,
        "sliding_window": next(window for window in windows if window),
        "layer_types": ["sliding_attention" if window else "full_attention" for window in windows],
    }


def _dense(spec: ModelSpec) -> dict[str, Any]:
    layer = used_kinds(spec)[0]
    config = _grouped(spec) | {"intermediate_size": layer.mlp.intermediate_size if layer.mlp else 0}
    if spec.family in {"llama", "granite"}:
        config["mlp_bias"] = layer.mlp is not None and layer.mlp.bias
    if spec.family in {"mistral", "phi3"}:
        config["sliding_window"] = layer.attention.sliding_window
    if spec.family in {"qwen2", "qwen3"}:
        config |= _windows(spec)
    if spec.family == "qwen2":
        # The class has biases on queries, keys and values whatever the config says (modeling_qwen2.py: Qwen2Attention).
        del config["attention_bias"]
    return config


def _first(spec: ModelSpec, wanted: Callable[[LayerSpec], bool]) -> LayerSpec | None:
    return next((kind for kind in used_kinds(spec) if wanted(kind)), None)


def _experts(spec: ModelSpec) -> MoeSpec:
    layer = _first(spec, lambda kind: kind.moe is not None)
    if layer is None or layer.moe is None:
        raise DocumentInvalid(f"a {spec.family} without experts is not a {spec.family}", where=_WHERE)
    return layer.moe


def _dense_width(spec: ModelSpec) -> int:
    """Width of the dense layers, or any number where there is none (the class then builds none)."""
    layer = _first(spec, lambda kind: kind.mlp is not None)
    return layer.mlp.intermediate_size if layer is not None and layer.mlp is not None else spec.hidden_size


def _dense_layers(spec: ModelSpec) -> list[int]:
    return [index for index, kind in enumerate(spec.layer_kind_sequence()) if spec.layer_kinds[kind].moe is None]


def _mixtral(spec: ModelSpec) -> dict[str, Any]:
    moe = _experts(spec)
    return _grouped(spec) | {
        "intermediate_size": moe.expert_intermediate_size,
        "num_local_experts": moe.num_experts,
        "num_experts_per_tok": moe.top_k,
        "router_aux_loss_coef": _recipe(spec).coefficient,
        "sliding_window": used_kinds(spec)[0].attention.sliding_window,
    }


def _qwen_moe(spec: ModelSpec) -> dict[str, Any]:
    moe = _experts(spec)
    config = (
        _grouped(spec)
        | _windows(spec)
        | {
            "intermediate_size": _dense_width(spec),
            "moe_intermediate_size": moe.expert_intermediate_size,
            "num_experts": moe.num_experts,
            "num_experts_per_tok": moe.top_k,
            "norm_topk_prob": _recipe(spec).normalizes,
            "router_aux_loss_coef": _recipe(spec).coefficient,
            "decoder_sparse_step": 1,
            "mlp_only_layers": _dense_layers(spec),
        }
    )
    if spec.family == "qwen2_moe":
        config["shared_expert_intermediate_size"] = moe.shared_intermediate_size
        config["qkv_bias"] = config.pop("attention_bias")
    return config


def _recipe(spec: ModelSpec) -> Routing:
    return routing(spec) or Routing()


def _routed(spec: ModelSpec) -> dict[str, Any]:
    """Keys that glm4_moe and the DeepSeek classes share; a scale that is not known is left to the class."""
    moe, recipe = _experts(spec), _recipe(spec)
    shared, rest = divmod(moe.shared_intermediate_size, moe.expert_intermediate_size)
    if rest:
        raise DocumentInvalid("the shared experts are not a whole number of experts wide", where=_WHERE)
    return {
        "intermediate_size": _dense_width(spec),
        "moe_intermediate_size": moe.expert_intermediate_size,
        "n_routed_experts": moe.num_experts,
        "num_experts_per_tok": moe.top_k,
        "n_shared_experts": shared,
        "n_group": moe.num_groups,
        "topk_group": moe.top_k_groups,
        "norm_topk_prob": recipe.normalizes,
        **({} if recipe.scaling_factor is None else {"routed_scaling_factor": recipe.scaling_factor}),
        # The class of DeepSeek-V2 looks at groups only with this method (modeling_deepseek_v2.py:101-104).
        **({"topk_method": "group_limited_greedy"} if spec.family == "deepseek_v2" and moe.num_groups > 1 else {}),
        "first_k_dense_replace": len(_dense_layers(spec)),
        "num_nextn_predict_layers": 0,
    }


def _glm4_moe(spec: ModelSpec) -> dict[str, Any]:
    return _grouped(spec) | _routed(spec) | {"use_qk_norm": used_kinds(spec)[0].attention.qk_norm == "per_head"}


def _deepseek(spec: ModelSpec) -> dict[str, Any]:
    attention = used_kinds(spec)[0].attention
    rotated = attention.qk_rope_head_dim or 0
    return (
        _base(spec)
        | _routed(spec)
        | {
            "model_type": "deepseek_v3" if spec.family == "kimi_k2" else spec.family,
            "num_attention_heads": attention.num_heads,
            "num_key_value_heads": attention.num_kv_heads,
            "attention_bias": attention.qkv_bias,
            "q_lora_rank": attention.q_lora_rank,
            "kv_lora_rank": attention.kv_lora_rank,
            "qk_rope_head_dim": rotated,
            "qk_nope_head_dim": attention.head_dim - rotated,
            "v_head_dim": attention.v_head_dim,
            "rms_norm_eps": spec.norm_epsilon,
            "rope_parameters": _rope(spec, attention),
        }
    )


def _gpt2(spec: ModelSpec) -> dict[str, Any]:
    layer = used_kinds(spec)[0]
    return {
        "model_type": "gpt2",
        "n_embd": spec.hidden_size,
        "n_layer": spec.num_layers,
        "n_head": layer.attention.num_heads,
        "n_inner": layer.mlp.intermediate_size if layer.mlp else None,
        "n_positions": spec.learned_positions,
        "vocab_size": spec.vocab_size,
        "activation_function": spec.activation_function,
        "layer_norm_epsilon": spec.norm_epsilon,
        "tie_word_embeddings": spec.tie_embeddings,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "use_cache": False,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _gpt_neox(spec: ModelSpec) -> dict[str, Any]:
    layer = used_kinds(spec)[0]
    rotated = layer.attention.qk_rope_head_dim or layer.attention.head_dim
    return _base(spec) | {
        "num_attention_heads": layer.attention.num_heads,
        "intermediate_size": layer.mlp.intermediate_size if layer.mlp else 0,
        "attention_bias": layer.attention.qkv_bias,
        "layer_norm_eps": spec.norm_epsilon,
        "use_parallel_residual": layer.parallel_residual,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": spec.rotary_base,
            "partial_rotary_factor": rotated / layer.attention.head_dim,
        },
    }


_WRITERS: dict[str, Callable[[ModelSpec], dict[str, Any]]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "phi3", "olmo2", "granite", "glm4"), _dense),
    "mixtral": _mixtral,
    "qwen2_moe": _qwen_moe,
    "qwen3_moe": _qwen_moe,
    "glm4_moe": _glm4_moe,
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2"), _deepseek),
    **HYBRID_WRITERS,
    **SEQ2SEQ_WRITERS,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
}
