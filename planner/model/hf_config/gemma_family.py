"""Gemma 2 and 3: norms before and after each branch, sliding windows on most layers, tied embeddings.

Defaults and shapes: ``transformers`` ``Gemma2Config`` and ``Gemma3TextConfig`` (5.x).
"""

from __future__ import annotations

from planner.model.hf_config.layers import (
    read_heads,
    read_layer_types,
    read_num_layers,
    read_vocabulary,
    read_width,
    windowed,
)
from planner.model.hf_config.reader import ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec


def import_gemma(reader: ConfigReader, name: str, family: str) -> ModelSpec:
    """Read gemma2 or gemma3_text: norms before and after each branch, sliding windows on most layers."""
    third = family == "gemma3_text"
    hidden = read_width(reader, "hidden_size", default=2304)
    num_layers = read_num_layers(reader, "num_hidden_layers", default=26)
    heads, kv_heads, head_dim = read_heads(reader, hidden, default_heads=8, default_kv_heads=4, default_head_dim=256)
    bias = reader.boolean("attention_bias", default=False)
    bidirectional = reader.boolean("use_bidirectional_attention", default=False)
    attention = AttentionSpec(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="per_head" if third else "none",
        causal=not bidirectional,
        logit_softcap=reader.optional_number("attn_logit_softcapping", default=None if third else 50.0),
    )
    mlp = MlpSpec(intermediate_size=read_width(reader, "intermediate_size", default=9216), gated=True)
    window = reader.optional_integer("sliding_window", default=4096)
    period = reader.integer("sliding_window_pattern", "_sliding_window_pattern", default=6) if third else 2
    slides = read_layer_types(reader, num_layers, [(layer + 1) % period != 0 for layer in range(num_layers)])
    layers = [
        LayerSpec(attention=windowed(attention, window if slide else None), mlp=mlp, num_norms=4) for slide in slides
    ]
    kinds, runs = runs_of(layers)
    return ModelSpec(
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 262208 if third else 256000),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=True),
        max_sequence_length=reader.integer("max_position_embeddings", default=131072 if third else 8192),
        activation_function=reader.text("hidden_activation", default="gelu_pytorch_tanh"),
        rotary_base=reader.number("rope_theta", default=1000000.0 if third else 10000.0),
        norm_epsilon=reader.number("rms_norm_eps", default=1e-6),
    )
