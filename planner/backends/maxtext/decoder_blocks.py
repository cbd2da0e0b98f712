"""The decoder block of MaxText that builds a model, and its keys.

A block is a class with a fixed shape (layers/nnx_decoders.py:1222-1250 lists them); its sizes are config keys, those
of the shipped ``configs/models/*.yml``.  What a block fixes and the model does not have is in ``model_rules``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.backends.rules.rule import mixture, used_kinds
from planner.backends.rules.training_recipe import Routing, routing, stretch
from planner.model.spec import ModelSpec, MoeSpec, TokenMixer

LLAMA_FACTOR = 8.0


@dataclass(frozen=True, slots=True)
class DecoderBlock:
    """What a decoder block builds, and the keys that it needs beyond sizes."""

    name: str
    """Value of ``decoder_block``."""
    qkv_bias: bool = False
    qk_norm: bool = False
    latent: bool = False
    experts: bool = False
    first_dense: bool = False
    shared_experts: bool = False
    num_norms: int = 2
    norm: str = "rms"
    gated: bool = True
    activations: tuple[str, ...] = ("silu", "swish")
    learned_positions: bool = False
    window_period: int = 0
    """Every so many layers one sees all tokens, the others a window; 0 = no windows."""
    softcap: bool = False
    sinks: bool = False
    linear_bias: bool = False
    pipeline: bool = True
    """Whether its layers can be cut into equal stages."""
    keys: Mapping[str, Any] = field(default_factory=dict)


_GEMMA = ("gelu_pytorch_tanh", "gelu_tanh", "gelu")
_SANDWICH = {"use_post_attn_norm": True, "use_post_ffw_norm": True}

BLOCKS: Mapping[str, DecoderBlock] = {
    "llama": DecoderBlock("llama2"),
    "phi3": DecoderBlock("llama2"),
    "mistral": DecoderBlock("mistral"),
    "mixtral": DecoderBlock("mixtral", experts=True),
    "qwen2": DecoderBlock("qwen2", qkv_bias=True, keys={"attention_bias": True, "normalize_embedding_logits": False}),
    "qwen3": DecoderBlock("qwen3", qk_norm=True, keys={"normalize_embedding_logits": False}),
    "qwen3_moe": DecoderBlock("qwen3_moe", qk_norm=True, experts=True, keys={"norm_topk_prob": True}),
    "deepseek_v2": DecoderBlock("deepseek", latent=True, experts=True, first_dense=True, shared_experts=True),
    "deepseek_v3": DecoderBlock("deepseek", latent=True, experts=True, first_dense=True, shared_experts=True),
    "kimi_k2": DecoderBlock("deepseek", latent=True, experts=True, first_dense=True, shared_experts=True),
    "gemma2": DecoderBlock(
        "gemma2",
        num_norms=4,
        activations=_GEMMA,
        window_period=2,
        softcap=True,
        pipeline=False,
        keys={"final_logits_soft_cap": 30.0, **_SANDWICH},
    ),
    "gemma3_text": DecoderBlock(
        "gemma3",
        qk_norm=True,
        num_norms=4,
        activations=_GEMMA,
        window_period=6,
        pipeline=False,
        keys={"local_rope_max_timescale": 10000, **_SANDWICH},
    ),
    "gpt2": DecoderBlock(
        "gpt3",
        qkv_bias=True,
        norm="layer",
        gated=False,
        activations=("gelu", "gelu_new", "gelu_pytorch_tanh"),
        learned_positions=True,
        linear_bias=True,
        keys={"fused_qkv": True, "normalize_embedding_logits": False, "use_iota_embed": True},
    ),
}
"""Model family -> block.  Families that are not here are refused by rule M1."""


def decoder_block(model: ModelSpec) -> DecoderBlock | None:
    """The block of the model's family, None where MaxText has none."""
    return BLOCKS.get(model.family)


def model_keys(model: ModelSpec, block: DecoderBlock, sequence_length: int) -> dict[str, Any]:
    """Config keys of a model that breaks no model rule."""
    kinds = used_kinds(model)
    attention = kinds[0].attention
    dense = next((kind.mlp for kind in kinds if kind.mlp is not None), None)
    moe = mixture(model)
    width = dense.intermediate_size if dense else moe.expert_intermediate_size if moe else 0
    keys: dict[str, Any] = {
        "decoder_block": block.name,
        "base_emb_dim": model.hidden_size,
        "base_num_query_heads": attention.num_heads,
        "base_num_kv_heads": attention.num_kv_heads,
        "head_dim": attention.head_dim,
        "base_mlp_dim": width,
        # One layer of gemma2's block is a pair: windowed, then global attention.
        "base_num_decoder_layers": model.num_layers // (2 if block.name == "gemma2" else 1),
        "vocab_size": model.vocab_size,
        "mlp_activations": [_activation(block), "linear"] if block.gated else [_activation(block)],
        "logits_via_embedding": model.tie_embeddings,
        "normalization_layer_epsilon": model.norm_epsilon,
        "use_qk_norm": block.qk_norm,
        **block.keys,
    }
    if block.learned_positions:
        keys["trainable_position_size"] = max(model.learned_positions, sequence_length)
    else:
        # MaxText takes whole numbers only.
        keys["rope_max_timescale"] = round(model.rotary_base)
        keys |= rotary_keys(model)
    if block.window_period:
        keys["sliding_window_size"] = max(kind.attention.sliding_window or 0 for kind in kinds)
    if block.softcap:
        keys["attn_logits_soft_cap"] = attention.logit_softcap or 0.0
    keys |= _latent_keys(attention) if block.latent else {}
    return keys | (_expert_keys(model, moe, block) | balancing_keys(routing(model) or Routing(), block) if moe else {})


def rotary_keys(model: ModelSpec) -> dict[str, Any]:
    """How rotary frequencies are stretched.

    Latent attention scales its softmax by YaRN's factor whenever more positions are declared than there were before
    the stretch, whatever the rope type (layers/attention_mla.py:756): without a stretch the two are the same.
    Llama-3.1's stretch is by 8, fixed in the code (layers/embeddings.py:503): another factor cannot be said.
    """
    found, latent = stretch(model), used_kinds(model)[0].attention.kind == "mla"
    positions = {"max_position_embeddings": model.max_sequence_length}
    if found is not None and found.kind == "yarn":
        return positions | {
            "rope_type": "yarn",
            "rope_factor": found.factor,
            "beta_fast": found.beta_fast,
            "mscale": found.mscale,
            "original_max_position_embeddings": found.original_positions,
        }
    if latent:
        return positions | {"original_max_position_embeddings": model.max_sequence_length}
    return {"rope_type": "llama3.1"} if found is not None and found.factor == LLAMA_FACTOR else {}


def balancing_keys(recipe: Routing, block: DecoderBlock) -> dict[str, Any]:
    """What balances the experts; both are 0, which balances nothing, in base.yml.

    The loss by sequence exists for sigmoid scores (layers/moe.py: uses_megatron_seq_aux_loss), others take Switch's.
    """
    keys: dict[str, Any] = {"load_balance_loss_weight": recipe.coefficient} if recipe.coefficient else {}
    if recipe.bias_update_rate is None or not block.shared_experts:
        return keys
    if recipe.balancing == "seq_aux_loss":
        keys["moe_use_megatron_seq_aux_loss"] = True
    return keys | {"routed_bias_update_rate": recipe.bias_update_rate}


def _activation(block: DecoderBlock) -> str:
    return "silu" if "silu" in block.activations else "gelu"


def _latent_keys(attention: TokenMixer) -> dict[str, Any]:
    rotated = attention.qk_rope_head_dim or 0
    return {
        "attention_type": "mla",
        "q_lora_rank": attention.q_lora_rank or 0,
        "kv_lora_rank": attention.kv_lora_rank,
        "qk_nope_head_dim": attention.head_dim - rotated,
        "qk_rope_head_dim": rotated,
        "v_head_dim": attention.v_head_dim,
    }


def _expert_keys(model: ModelSpec, moe: MoeSpec, block: DecoderBlock) -> dict[str, Any]:
    keys: dict[str, Any] = {
        "num_experts": moe.num_experts,
        "num_experts_per_tok": moe.top_k,
        "base_moe_mlp_dim": moe.expert_intermediate_size,
    }
    if block.first_dense:
        keys["first_num_dense_layers"] = leading_dense_layers(model)
    if block.shared_experts:
        keys |= {
            "shared_experts": moe.shared_intermediate_size // moe.expert_intermediate_size,
            **_scale(routing(model) or Routing()),
            "routed_score_func": moe.score_function,
            # A correction bias beside sigmoid scores is updated outside the gradient: no parameter of a description.
            "routed_bias": moe.router_bias or moe.score_function == "sigmoid",
        }
        if moe.num_groups > 1:
            keys |= {"n_routing_groups": moe.num_groups, "topk_routing_group": moe.top_k_groups}
    if model.mtp is not None:
        keys["mtp_num_layers"] = model.mtp.num_layers
    return keys


def _scale(recipe: Routing) -> dict[str, Any]:
    return {} if recipe.scaling_factor is None else {"routed_scaling_factor": recipe.scaling_factor}


def leading_dense_layers(model: ModelSpec) -> int:
    """Dense layers before the first one with experts."""
    count = 0
    for run in model.layer_runs:
        if model.layer_kinds[run.kind].moe is not None:
            break
        count += run.count
    return count
