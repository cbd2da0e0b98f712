"""DeepSeek's latent attention with shared and routed experts: deepseek_v2, deepseek_v3, kimi_k2.

Defaults and shapes: ``transformers`` ``DeepseekV2Config`` and ``DeepseekV3Config`` (5.x); kimi_k2 has the layout of
deepseek_v3.  The router's correction bias is a buffer.  The ``transformers`` classes build no multi-token-prediction
module, so those do not count in ``total_parameters``.  ``moe_layer_freq`` is honoured as in the models' own code.
"""

from __future__ import annotations

from planner.model.hf_config.layers import (
    read_num_layers,
    read_rope_base,
    read_vocabulary,
    read_width,
)
from planner.model.hf_config.moe_family import read_experts, read_groups
from planner.model.hf_config.reader import ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MoeSpec, MtpSpec


def read_latent_attention(reader: ConfigReader, *, default_heads: int) -> AttentionSpec:
    """Multi-head latent attention; the bias key reaches the down projections and the output projection."""
    heads = reader.integer("num_attention_heads", default=default_heads)
    rope_dim = reader.integer("qk_rope_head_dim", default=64)
    if rope_dim % 2:
        reader.refuse("qk_rope_head_dim", f"must be even for rotary positions, is {rope_dim}")
    bias = reader.boolean("attention_bias", default=False)
    return AttentionSpec(
        kind="mla",
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=reader.integer("qk_nope_head_dim", default=128) + rope_dim,
        v_head_dim=reader.integer("v_head_dim", default=128),
        qkv_bias=bias,
        output_bias=bias,
        q_lora_rank=reader.optional_integer("q_lora_rank", default=1536),
        kv_lora_rank=reader.integer("kv_lora_rank", default=512),
        qk_rope_head_dim=rope_dim,
    )


def _layers(
    reader: ConfigReader, attention: AttentionSpec, mlp: MlpSpec, moe: MoeSpec, *, num_layers: int, default_dense: int
) -> list[LayerSpec]:
    dense = reader.integer("first_k_dense_replace", default=default_dense, minimum=0)
    every = reader.integer("moe_layer_freq", default=1)
    return [
        LayerSpec(attention=attention, moe=moe)
        if layer >= dense and layer % every == 0
        else LayerSpec(attention=attention, mlp=mlp)
        for layer in range(num_layers)
    ]


def import_deepseek_v2(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a DeepSeek-V2: softmax routing, device-limited groups, two shared experts."""
    hidden = read_width(reader, "hidden_size", default=4096)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=32)
    attention = read_latent_attention(reader, default_heads=32)
    bias = reader.boolean("mlp_bias", default=False)
    experts, top_k = _read_v2_experts(reader)
    groups, top_groups = read_groups(reader, experts, groups=None, top_groups=None)
    width = read_width(reader, "moe_intermediate_size", default=1407)
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=width,
        shared_intermediate_size=width * (reader.optional_integer("n_shared_experts", default=2, minimum=0) or 0),
        shared_bias=bias,
        num_groups=groups,
        top_k_groups=top_groups,
    )
    mlp = MlpSpec(intermediate_size=read_width(reader, "intermediate_size", default=11008), gated=True, bias=bias)
    layers = _layers(reader, attention, mlp, moe, num_layers=num_layers, default_dense=0)
    kinds, runs = runs_of(layers)
    return ModelSpec(
        name=name,
        family="deepseek_v2",
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 102400),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=False),
        max_sequence_length=reader.integer("max_position_embeddings", default=2048),
        activation_function=reader.text("hidden_act", default="silu"),
        rotary_base=read_rope_base(reader),
        norm_epsilon=reader.number("rms_norm_eps", default=1e-6),
    )


def _read_v2_experts(reader: ConfigReader) -> tuple[int, int]:
    if reader.data.get("num_experts_per_tok") is None:
        # DeepseekV2Config has no default for it, and routing cannot run without one.
        reader.refuse("num_experts_per_tok", "is required: the number of routed experts that a token meets")
        reader.integer("n_routed_experts", "num_experts", default=64)
        return 1, 1
    return read_experts(reader, experts=("n_routed_experts", "num_experts"), num_experts=64, top_k=1)


def import_deepseek_v3(reader: ConfigReader, name: str, family: str) -> ModelSpec:
    """Read a DeepSeek-V3 or Kimi K2: sigmoid routing, node-limited groups, multi-token prediction."""
    hidden = read_width(reader, "hidden_size", default=7168)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=61)
    attention = read_latent_attention(reader, default_heads=128)
    experts, top_k = read_experts(reader, experts=("n_routed_experts", "num_local_experts"), num_experts=256, top_k=8)
    groups, top_groups = read_groups(reader, experts, groups=8, top_groups=4)
    width = read_width(reader, "moe_intermediate_size", default=2048)
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=width,
        shared_intermediate_size=width * (reader.optional_integer("n_shared_experts", default=1, minimum=0) or 0),
        score_function="sigmoid",
        num_groups=groups,
        top_k_groups=top_groups,
    )
    mlp = MlpSpec(intermediate_size=read_width(reader, "intermediate_size", default=18432), gated=True)
    layers = _layers(reader, attention, mlp, moe, num_layers=num_layers, default_dense=3)
    kinds, runs = runs_of(layers)
    mtp_layers = reader.integer("num_nextn_predict_layers", "num_mtp_layers", default=1, minimum=0, maximum=64)
    return ModelSpec(
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 129280),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=False),
        max_sequence_length=reader.integer("max_position_embeddings", default=4096),
        mtp=MtpSpec(num_layers=mtp_layers, kind=kinds.index(layers[-1])) if mtp_layers else None,
        activation_function=reader.text("hidden_act", default="silu"),
        rotary_base=read_rope_base(reader),
        norm_epsilon=reader.number("rms_norm_eps", default=1e-6),
    )
