"""Dense decoders with RMS norm, rotary positions and a gated MLP: llama and its relatives.

Defaults and shapes: ``transformers`` configuration and modeling files of each model type (5.x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.model.hf_config.layers import (
    read_heads,
    read_num_layers,
    read_partial_rotary,
    read_qwen_windows,
    read_rope_base,
    read_vocabulary,
    read_width,
    windowed,
)
from planner.model.hf_config.reader import ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, NormPlacement

WindowRule = Literal["none", "all", "qwen"]


@dataclass(frozen=True, slots=True)
class DenseDefaults:
    """What one dense class assumes when a key is left out, and how its layer differs from llama's."""

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_layers: int = 32
    heads: int = 32
    kv_heads: int | None = None
    head_dim: int | None = None
    max_positions: int = 2048
    norm_epsilon: float = 1e-6
    rope_base: float = 10000.0
    qkv_bias: bool | None = None
    """None = the key ``attention_bias`` decides."""
    attention_bias_default: bool = False
    output_bias: bool | None = None
    """None = as the qkv bias."""
    mlp_bias_key: bool = False
    qk_norm: Literal["none", "per_head", "full_width"] = "none"
    num_norms: int = 2
    norm_placement: NormPlacement = "pre"
    window: WindowRule = "none"
    default_window: int | None = None
    partial_rotary: float = 1.0
    reads_head_dim: bool = True


LLAMA = DenseDefaults(mlp_bias_key=True)
GRANITE = DenseDefaults(mlp_bias_key=True)
MISTRAL = DenseDefaults(
    intermediate_size=14336,
    kv_heads=8,
    max_positions=131072,
    qkv_bias=False,
    window="all",
    default_window=4096,
)
QWEN2 = DenseDefaults(
    vocab_size=151936,
    intermediate_size=22016,
    kv_heads=32,
    max_positions=32768,
    qkv_bias=True,
    output_bias=False,
    window="qwen",
)
QWEN2_VL_TEXT = DenseDefaults(
    vocab_size=152064,
    hidden_size=8192,
    intermediate_size=29568,
    num_layers=80,
    heads=64,
    kv_heads=8,
    max_positions=32768,
    norm_epsilon=1e-5,
    rope_base=1000000.0,
    qkv_bias=True,
    output_bias=False,
    window="qwen",
    reads_head_dim=False,
)
QWEN3 = DenseDefaults(
    vocab_size=151936,
    intermediate_size=22016,
    kv_heads=32,
    head_dim=128,
    max_positions=32768,
    qk_norm="per_head",
    window="qwen",
)
PHI3 = DenseDefaults(
    vocab_size=32064,
    hidden_size=3072,
    intermediate_size=8192,
    max_positions=4096,
    norm_epsilon=1e-5,
    qkv_bias=False,
    window="all",
)
OLMO2 = DenseDefaults(vocab_size=50304, norm_epsilon=1e-5, qk_norm="full_width", norm_placement="post_branch")
GLM4 = DenseDefaults(
    vocab_size=151552,
    intermediate_size=13696,
    num_layers=40,
    kv_heads=2,
    head_dim=128,
    max_positions=131072,
    norm_epsilon=0.00000015625,
    attention_bias_default=True,
    output_bias=False,
    num_norms=4,
    partial_rotary=0.5,
)


def read_attention(reader: ConfigReader, hidden_size: int, defaults: DenseDefaults) -> AttentionSpec:
    """Grouped-query attention of one dense class, without its windows."""
    heads, kv_heads, head_dim = read_heads(
        reader,
        hidden_size,
        default_heads=defaults.heads,
        default_kv_heads=defaults.kv_heads,
        default_head_dim=defaults.head_dim,
        reads_head_dim=defaults.reads_head_dim,
    )
    bias = defaults.qkv_bias
    if bias is None:
        bias = reader.boolean("attention_bias", default=defaults.attention_bias_default)
    return AttentionSpec(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=bias,
        output_bias=bias if defaults.output_bias is None else defaults.output_bias,
        qk_norm=defaults.qk_norm,
        qk_rope_head_dim=read_partial_rotary(reader, head_dim, defaults.partial_rotary),
    )


def read_windows(reader: ConfigReader, num_layers: int, defaults: DenseDefaults) -> list[int | None]:
    """Sliding window of every layer."""
    if defaults.window == "qwen":
        return read_qwen_windows(reader, num_layers)
    if defaults.window == "all":
        window = reader.optional_integer("sliding_window", default=defaults.default_window)
        return [window] * num_layers
    return [None] * num_layers


def import_dense(reader: ConfigReader, name: str, family: str, defaults: DenseDefaults) -> ModelSpec:
    """Read a dense decoder of the llama kind."""
    hidden = read_width(reader, "hidden_size", default=defaults.hidden_size)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=defaults.num_layers)
    attention = read_attention(reader, hidden, defaults)
    mlp = MlpSpec(
        intermediate_size=read_width(reader, "intermediate_size", default=defaults.intermediate_size),
        gated=True,
        bias=defaults.mlp_bias_key and reader.boolean("mlp_bias", default=False),
    )
    layers = [
        LayerSpec(
            attention=windowed(attention, window),
            mlp=mlp,
            num_norms=defaults.num_norms,
            norm_placement=defaults.norm_placement,
        )
        for window in read_windows(reader, num_layers, defaults)
    ]
    kinds, runs = runs_of(layers)
    return ModelSpec(
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, defaults.vocab_size),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=False),
        max_sequence_length=reader.integer("max_position_embeddings", default=defaults.max_positions),
        activation_function=reader.text("hidden_act", default="silu"),
        rotary_base=read_rope_base(reader, defaults.rope_base),
        norm_epsilon=reader.number("rms_norm_eps", default=defaults.norm_epsilon),
    )
