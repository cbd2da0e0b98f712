"""The model family of torchtitan that builds this model, and its sizes.

``llama3`` grouped-query attention and a dense SwiGLU; ``qwen3`` the same with normed heads, dense or all experts;
``deepseek_v3`` latent attention, leading dense layers, then experts with shared ones.  Sources: torchtitan 0.3.0
models/{llama3,qwen3,deepseek_v3}/__init__.py, 0.2.2 models/*/model/args.py.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.backends.rules.rule import used_kinds
from planner.backends.rules.training_recipe import Routing, routing, stretch
from planner.backends.torchtitan.version import TOML_VERSION
from planner.model.spec import LayerSpec, ModelSpec

FamilyName = Literal["llama3", "qwen3", "deepseek_v3"]
Sizes = dict[str, Any]


def family_of(model: ModelSpec) -> FamilyName:
    """The only family that may fit; ``model_rules`` say whether it does."""
    kinds = used_kinds(model)
    if any(kind.attention.kind == "mla" for kind in kinds):
        return "deepseek_v3"
    if any(kind.attention.qk_norm != "none" or kind.moe is not None for kind in kinds):
        return "qwen3"
    return "llama3"


def num_dense_layers(model: ModelSpec) -> int:
    """Layers before the first one with experts; all of them without experts."""
    kinds = [model.layer_kinds[index] for index in model.layer_kind_sequence()]
    return next((index for index, kind in enumerate(kinds) if kind.moe is not None), len(kinds))


def model_sizes(model: ModelSpec, sequence_length: int, version: str) -> Sizes:
    """Arguments of the family's builder, of a model that breaks no model rule."""
    family = family_of(model)
    if version == TOML_VERSION:
        return {"llama3": _llama3_toml, "qwen3": _qwen3_toml, "deepseek_v3": _deepseek_toml}[family](
            model, sequence_length
        )
    sizes = {"llama3": _llama3, "qwen3": _qwen3, "deepseek_v3": _deepseek}[family](model)
    return _common(model, sequence_length) | sizes


def _common(model: ModelSpec, sequence_length: int) -> Sizes:
    return {
        "n_layers": model.num_layers,
        "dim": model.hidden_size,
        "vocab_size": model.vocab_size,
        "n_heads": model.layer_kinds[model.layer_runs[0].kind].attention.num_heads,
        "norm_eps": model.norm_epsilon,
        "rope_theta": model.rotary_base,
        "max_seq_len": max(model.max_sequence_length, sequence_length),
    }


def _llama3(model: ModelSpec) -> Sizes:
    kind = _first(model)
    return {
        "n_kv_heads": kind.attention.num_kv_heads,
        "hidden_dim": _mlp_width(kind),
        "tied": model.tie_embeddings,
        "rope_scaling_factor": _llama_factor(model),
    }


def _llama_factor(model: ModelSpec) -> float | None:
    """Of Llama-3.1's stretch; None = the frequencies are not stretched."""
    found = stretch(model)
    return found.factor if found else None


def _qwen3(model: ModelSpec) -> Sizes:
    kind, moe = _first(model), _first(model).moe
    return {
        "n_kv_heads": kind.attention.num_kv_heads,
        "head_dim": kind.attention.head_dim,
        "hidden_dim": _mlp_width(kind),
        "tied": model.tie_embeddings,
        "num_experts": moe.num_experts if moe else 0,
        "moe_hidden_dim": moe.expert_intermediate_size if moe else 0,
        "top_k": moe.top_k if moe else 0,
    }


def _deepseek(model: ModelSpec) -> Sizes:
    attention, moe = _first(model).attention, _experts(model).moe
    assert moe is not None
    recipe, found = routing(model) or Routing(), stretch(model)
    return {
        "n_dense_layers": num_dense_layers(model),
        "q_lora_rank": attention.q_lora_rank or 0,
        "kv_lora_rank": attention.kv_lora_rank,
        "qk_nope_head_dim": attention.head_dim - (attention.qk_rope_head_dim or 0),
        "qk_rope_head_dim": attention.qk_rope_head_dim,
        "v_head_dim": attention.v_head_dim,
        "dense_hidden_dim": _dense_width(model),
        "moe_hidden_dim": moe.expert_intermediate_size,
        "num_experts": moe.num_experts,
        "num_shared_experts": moe.shared_intermediate_size // moe.expert_intermediate_size,
        "router_top_k": moe.top_k,
        "router_score_func": moe.score_function,
        "router_num_expert_groups": moe.num_groups if moe.num_groups > 1 else None,
        "router_num_limited_groups": moe.top_k_groups if moe.num_groups > 1 else None,
        "router_route_norm": recipe.normalizes,
        # 1 where the scale of this size is not known: PLAN.md asks for it.
        "router_route_scale": 1.0 if recipe.scaling_factor is None else recipe.scaling_factor,
        "rope_factor": found.factor if found else 1.0,
        "original_seq_len": found.original_positions if found else model.max_sequence_length,
        "beta_fast": found.beta_fast if found else 32.0,
        "mscale": found.mscale if found else 1.0,
    }


def _llama3_toml(model: ModelSpec, sequence_length: int) -> Sizes:
    """The MLP is ``8/3 dim`` times a factor wide, rounded up to a multiple: the width itself as multiple gives any."""
    width = _mlp_width(_first(model))
    return _common(model, sequence_length) | {
        "n_kv_heads": _first(model).attention.num_kv_heads,
        "rope_scaling_factor": _llama_factor(model),
        "multiple_of": width,
        "ffn_dim_multiplier": 3 * width / (16 * model.hidden_size),
    }


def _qwen3_toml(model: ModelSpec, sequence_length: int) -> Sizes:
    sizes = _common(model, sequence_length) | _qwen3(model)
    experts, width, top_k = (sizes.pop(name) for name in ("num_experts", "moe_hidden_dim", "top_k"))
    sizes["enable_weight_tying"] = sizes.pop("tied")
    if not experts:
        return sizes
    moe = {"num_experts": experts, "num_shared_experts": 0, "top_k": top_k}
    router = {"score_func": "softmax", "route_norm": True, "score_before_experts": False}
    return sizes | {"moe_enabled": True, "moe_inter_dim": width, "moe_args": moe | router}


def _deepseek_toml(model: ModelSpec, sequence_length: int) -> Sizes:
    sizes = _deepseek(model)
    moe = {
        "num_experts": sizes.pop("num_experts"),
        "num_shared_experts": sizes.pop("num_shared_experts"),
        "top_k": sizes.pop("router_top_k"),
        "score_func": sizes.pop("router_score_func"),
        "num_expert_groups": sizes.pop("router_num_expert_groups"),
        "num_limited_groups": sizes.pop("router_num_limited_groups"),
        "route_norm": sizes.pop("router_route_norm"),
        "route_scale": sizes.pop("router_route_scale"),
        "score_before_experts": False,
    }
    sizes["inter_dim"] = sizes.pop("dense_hidden_dim")
    sizes["moe_inter_dim"] = sizes.pop("moe_hidden_dim")
    return _common(model, sequence_length) | sizes | {"moe_args": moe}


def _first(model: ModelSpec) -> LayerSpec:
    return model.layer_kinds[model.layer_runs[0].kind]


def _experts(model: ModelSpec) -> LayerSpec:
    return next(kind for kind in used_kinds(model) if kind.moe is not None)


def _mlp_width(kind: LayerSpec) -> int:
    return kind.mlp.intermediate_size if kind.mlp else 0


def _dense_width(model: ModelSpec) -> int:
    """Width of the dense layers; without any, the builder still wants a number and uses it nowhere."""
    return next((kind.mlp.intermediate_size for kind in used_kinds(model) if kind.mlp), model.hidden_size)
