"""The models that MaxText ships, as the planner describes models.

``models_0_2_5.json``: model name -> keys of ``configs/models/*.yml`` of the release, of the decoder blocks below;
what a file leaves out is ``BASE``, the values of ``configs/base.yml``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.backends.maxtext.decoder_blocks import BLOCKS
from planner.errors import DocumentInvalid
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MoeSpec, MtpSpec

FAMILIES = {
    "llama2": "llama", "mistral": "mistral", "mixtral": "mixtral", "qwen2": "qwen2", "qwen3": "qwen3",
    "qwen3_moe": "qwen3_moe", "deepseek": "deepseek_v3",
}  # fmt: skip
"""Decoder block -> family."""
BASE: Mapping[str, Any] = {
    "decoder_block": "llama2", "base_emb_dim": 2048, "base_num_query_heads": 16, "base_num_kv_heads": 16,
    "head_dim": 128, "base_mlp_dim": 7168, "base_num_decoder_layers": 16, "vocab_size": 32000,
    "mlp_activations": ["silu", "linear"], "logits_via_embedding": False, "normalization_layer_epsilon": 1e-05,
    "use_qk_norm": False, "attention_bias": False, "rope_max_timescale": 10000, "num_experts": 1,
    "num_experts_per_tok": 1, "base_moe_mlp_dim": -1, "first_num_dense_layers": 0, "shared_experts": 0,
    "routed_score_func": "", "n_routing_groups": -1, "topk_routing_group": -1, "mtp_num_layers": 0,
    "attention_type": "global", "q_lora_rank": 0, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128,
}  # fmt: skip


@cache
def shipped() -> dict[str, dict[str, Any]]:
    """Model name -> its keys."""
    return dict(json.loads(Path(__file__).with_name("models_0_2_5.json").read_text(encoding="utf-8")))


def shipped_model(name: str, over: Mapping[str, Any], length: int, where: str) -> ModelSpec:
    """The model of a ``model_name`` and keys laid over, for samples of ``length`` tokens.

    Raises DocumentInvalid for one that is not described.
    """
    if name != "default" and name not in shipped():
        what = f"the sizes of model_name {name!r} are not known"
        raise DocumentInvalid(what, where=where, hint=f"known are {', '.join(shipped())}")
    keys = {**BASE, **shipped().get(name, {}), **over}
    if keys["decoder_block"] not in FAMILIES:
        what = f"the decoder block {keys['decoder_block']!r} is not read"
        raise DocumentInvalid(what, where=where, hint=f"read are {', '.join(FAMILIES)}")
    try:
        return _model(name, keys, length)
    except (TypeError, ValueError) as error:
        raise DocumentInvalid(f"the keys describe no possible model: {str(error)[:100]}", where=where) from None


def _model(name: str, keys: Mapping[str, Any], length: int) -> ModelSpec:
    block = BLOCKS[FAMILIES[keys["decoder_block"]]]
    attention = _attention(keys, qkv_bias=block.qkv_bias or keys["attention_bias"])
    dense = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=keys["base_mlp_dim"], gated=True), norm="rms")
    count = keys["base_num_decoder_layers"]
    layers = [dense] * count
    if keys["num_experts"] > 1:
        first = keys["first_num_dense_layers"]
        layers = [dense] * first + [_sparse(attention, keys)] * (count - first)
    kinds, runs = runs_of(layers)
    mtp = keys["mtp_num_layers"]
    return ModelSpec(
        name="maxtext" if name == "default" else name,
        family=FAMILIES[keys["decoder_block"]],
        hidden_size=keys["base_emb_dim"],
        vocab_size=keys["vocab_size"],
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=keys["logits_via_embedding"],
        mtp=MtpSpec(num_layers=mtp, kind=kinds.index(layers[-1]), count_in_parameters=True) if mtp else None,
        max_sequence_length=length,
        activation_function="silu",
        position="rope",
        rotary_base=keys["rope_max_timescale"],
        norm_epsilon=keys["normalization_layer_epsilon"],
    )


def _attention(keys: Mapping[str, Any], *, qkv_bias: bool) -> AttentionSpec:
    heads = keys["base_num_query_heads"]
    if keys["attention_type"] == "mla":
        return AttentionSpec(
            kind="mla",
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=keys["qk_nope_head_dim"] + keys["qk_rope_head_dim"],
            v_head_dim=keys["v_head_dim"],
            q_lora_rank=keys["q_lora_rank"] or None,
            kv_lora_rank=keys["kv_lora_rank"],
            qk_rope_head_dim=keys["qk_rope_head_dim"],
        )
    return AttentionSpec(
        num_heads=heads,
        num_kv_heads=keys["base_num_kv_heads"],
        head_dim=keys["head_dim"],
        v_head_dim=keys["head_dim"],
        qkv_bias=qkv_bias,
        qk_norm="per_head" if keys["use_qk_norm"] else "none",
    )


def _sparse(attention: AttentionSpec, keys: Mapping[str, Any]) -> LayerSpec:
    width = keys["base_moe_mlp_dim"] if keys["base_moe_mlp_dim"] > 0 else keys["base_mlp_dim"]
    groups = max(keys["n_routing_groups"], 1)
    moe = MoeSpec(
        num_experts=keys["num_experts"],
        top_k=keys["num_experts_per_tok"],
        expert_intermediate_size=width,
        gated=True,
        shared_intermediate_size=keys["shared_experts"] * width,
        score_function="sigmoid" if keys["routed_score_func"] == "sigmoid" else "softmax",
        num_groups=groups,
        top_k_groups=keys["topk_routing_group"] if keys["topk_routing_group"] > 0 else groups,
    )
    return LayerSpec(attention=attention, moe=moe, norm="rms")
