"""Mixtures of experts on grouped-query attention: mixtral, qwen2_moe, qwen3_moe, glm4_moe, gpt_oss.

Defaults and shapes: ``transformers`` configuration and modeling files of each model type (5.x).
"""

from __future__ import annotations

from planner.model.hf_config.layers import (
    read_layer_types,
    read_num_layers,
    read_qwen_windows,
    read_rope_base,
    read_vocabulary,
    read_width,
    windowed,
)
from planner.model.hf_config.llama_family import DenseDefaults, read_attention
from planner.model.hf_config.reader import ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MoeSpec, MtpSpec

MIXTRAL = DenseDefaults(kv_heads=8, qkv_bias=False)
QWEN2_MOE = DenseDefaults(heads=16, kv_heads=16, qkv_bias=True, output_bias=False)
QWEN3_MOE = DenseDefaults(heads=32, kv_heads=4, qk_norm="per_head")
GLM4_MOE = DenseDefaults(heads=96, kv_heads=8, output_bias=False, partial_rotary=0.5)
GPT_OSS = DenseDefaults(heads=64, kv_heads=8, head_dim=64, attention_bias_default=True)


def read_experts(reader: ConfigReader, *, experts: tuple[str, ...], num_experts: int, top_k: int) -> tuple[int, int]:
    """Number of routed experts and how many of them a token meets."""
    count = reader.integer(*experts, default=num_experts, maximum=100_000)
    chosen = reader.integer("num_experts_per_tok", default=top_k)
    if chosen > count:
        reader.refuse("num_experts_per_tok", f"must not exceed the {count} experts, is {chosen}")
    return count, chosen


def read_groups(
    reader: ConfigReader, num_experts: int, *, groups: int | None, top_groups: int | None
) -> tuple[int, int]:
    """Expert groups of group-limited routing, and how many of them a token may reach; (1, 1) = none."""
    count = reader.optional_integer("n_group", default=groups) or 1
    chosen = reader.optional_integer("topk_group", default=top_groups) or count
    if num_experts % count:
        reader.refuse("n_group", f"must divide the {num_experts} experts, is {count}")
    if chosen > count:
        reader.refuse("topk_group", f"must not exceed n_group = {count}, is {chosen}")
    return count, chosen


def _spec(
    reader: ConfigReader,
    name: str,
    family: str,
    layers: list[LayerSpec],
    *,
    hidden_size: int,
    vocab_size: int,
    max_positions: int,
    rope_base: float = 10000.0,
    norm_epsilon: float = 1e-6,
    mtp_layers: int = 0,
) -> ModelSpec:
    kinds, runs = runs_of(layers)
    mtp = MtpSpec(num_layers=mtp_layers, kind=kinds.index(layers[-1])) if mtp_layers else None
    return ModelSpec(
        name=name,
        family=family,
        hidden_size=hidden_size,
        vocab_size=read_vocabulary(reader, vocab_size),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=False),
        max_sequence_length=reader.integer("max_position_embeddings", default=max_positions),
        mtp=mtp,
        activation_function=reader.text("hidden_act", default="silu"),
        rotary_base=read_rope_base(reader, rope_base),
        norm_epsilon=reader.number("rms_norm_eps", default=norm_epsilon),
    )


def import_mixtral(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Mixtral: every layer routes, no shared expert."""
    hidden = read_width(reader, "hidden_size", default=4096)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=32)
    attention = windowed(read_attention(reader, hidden, MIXTRAL), reader.optional_integer("sliding_window"))
    experts, top_k = read_experts(reader, experts=("num_local_experts", "num_experts"), num_experts=8, top_k=2)
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=read_width(reader, "intermediate_size", default=14336),
    )
    layers = [LayerSpec(attention=attention, moe=moe)] * num_layers
    return _spec(
        reader,
        name,
        "mixtral",
        layers,
        hidden_size=hidden,
        vocab_size=32000,
        max_positions=131072,
        rope_base=1000000.0,
        norm_epsilon=1e-5,
    )


def _sparse_layers(reader: ConfigReader, num_layers: int) -> list[bool]:
    """Which Qwen layers route: every ``decoder_sparse_step``-th one, except ``mlp_only_layers``."""
    step = reader.integer("decoder_sparse_step", default=1)
    dense = set(reader.integers("mlp_only_layers", []))
    return [layer not in dense and (layer + 1) % step == 0 for layer in range(num_layers)]


def _qwen_layers(
    reader: ConfigReader, attentions: list[AttentionSpec], moe: MoeSpec, intermediate_size: int
) -> list[LayerSpec]:
    mlp = MlpSpec(intermediate_size=read_width(reader, "intermediate_size", default=intermediate_size), gated=True)
    sparse = _sparse_layers(reader, len(attentions))
    return [
        LayerSpec(attention=attention, moe=moe) if routes else LayerSpec(attention=attention, mlp=mlp)
        for attention, routes in zip(attentions, sparse, strict=True)
    ]


def import_qwen2_moe(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Qwen 1.5/2 MoE: fine experts, one gated shared expert."""
    hidden = read_width(reader, "hidden_size", default=2048)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=24)
    attention = read_attention(reader, hidden, QWEN2_MOE)
    attention = attention.model_copy(update={"qkv_bias": reader.boolean("qkv_bias", default=True)})
    experts, top_k = read_experts(reader, experts=("num_experts",), num_experts=60, top_k=4)
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=read_width(reader, "moe_intermediate_size", default=1408),
        shared_intermediate_size=read_width(reader, "shared_expert_intermediate_size", default=5632),
        shared_gate=True,
    )
    windows = _qwen2_moe_windows(reader, num_layers)
    layers = _qwen_layers(reader, [windowed(attention, window) for window in windows], moe, 5632)
    return _spec(reader, name, "qwen2_moe", layers, hidden_size=hidden, vocab_size=151936, max_positions=32768)


def _qwen2_moe_windows(reader: ConfigReader, num_layers: int) -> list[int | None]:
    """Unlike the dense class, even layers *below* ``max_window_layers`` slide."""
    use = reader.boolean("use_sliding_window", default=False)
    window = reader.optional_integer("sliding_window", default=4096, minimum=0) if use else None
    last = reader.integer("max_window_layers", default=28, minimum=0)
    default = [use and (layer + 1) % 2 == 1 and layer < last for layer in range(num_layers)]
    return [(window or None) if slides else None for slides in read_layer_types(reader, num_layers, default)]


def import_qwen3_moe(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Qwen3 MoE: per-head norms on queries and keys, no shared expert."""
    hidden = read_width(reader, "hidden_size", default=2048)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=24)
    window = read_qwen_windows(reader, 1, default_max_window_layers=0)[0]
    attention = windowed(read_attention(reader, hidden, QWEN3_MOE), window)
    experts, top_k = read_experts(reader, experts=("num_experts", "num_local_experts"), num_experts=128, top_k=8)
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=read_width(reader, "moe_intermediate_size", default=768),
    )
    layers = _qwen_layers(reader, [attention] * num_layers, moe, 6144)
    return _spec(reader, name, "qwen3_moe", layers, hidden_size=hidden, vocab_size=151936, max_positions=32768)


def import_glm4_moe(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a GLM-4.5: dense first layers, sigmoid routing, shared expert, multi-token prediction.

    The correction bias of the router is a buffer, not a parameter; the ``transformers`` class builds no MTP module.
    """
    hidden = read_width(reader, "hidden_size", default=4096)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=46)
    attention = read_attention(reader, hidden, GLM4_MOE)
    if reader.boolean("use_qk_norm", default=False):
        attention = attention.model_copy(update={"qk_norm": "per_head"})
    experts, top_k = read_experts(reader, experts=("n_routed_experts", "num_local_experts"), num_experts=128, top_k=8)
    groups, top_groups = read_groups(reader, experts, groups=1, top_groups=1)
    expert_width = read_width(reader, "moe_intermediate_size", default=1408)
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=expert_width,
        shared_intermediate_size=expert_width * reader.integer("n_shared_experts", default=1, minimum=0),
        score_function="sigmoid",
        num_groups=groups,
        top_k_groups=top_groups,
    )
    mlp = MlpSpec(intermediate_size=read_width(reader, "intermediate_size", default=10944), gated=True)
    dense = min(reader.integer("first_k_dense_replace", default=1, minimum=0), num_layers)
    layers = [LayerSpec(attention=attention, mlp=mlp)] * dense
    layers += [LayerSpec(attention=attention, moe=moe)] * (num_layers - dense)
    return _spec(
        reader,
        name,
        "glm4_moe",
        layers,
        hidden_size=hidden,
        vocab_size=151552,
        max_positions=131072,
        norm_epsilon=1e-5,
        mtp_layers=reader.integer("num_nextn_predict_layers", "num_mtp_layers", default=1, minimum=0, maximum=64),
    )


def import_gpt_oss(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a gpt-oss: attention sinks, alternating windows, biases on experts and router."""
    hidden = read_width(reader, "hidden_size", default=2880)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=36)
    attention = read_attention(reader, hidden, GPT_OSS).model_copy(update={"sinks": True})
    window = reader.optional_integer("sliding_window", default=128)
    slides = read_layer_types(reader, num_layers, [layer % 2 == 0 for layer in range(num_layers)])
    experts, top_k = read_experts(reader, experts=("num_local_experts", "num_experts"), num_experts=128, top_k=4)
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=read_width(reader, "intermediate_size", default=2880),
        expert_bias=True,
        router_bias=True,
    )
    layers = [LayerSpec(attention=windowed(attention, window if slide else None), moe=moe) for slide in slides]
    return _spec(
        reader,
        name,
        "gpt_oss",
        layers,
        hidden_size=hidden,
        vocab_size=201088,
        max_positions=131072,
        rope_base=150000.0,
        norm_epsilon=1e-5,
    )
