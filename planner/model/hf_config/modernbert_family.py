"""Decoders of the ModernBERT kind: rotary, gated, mostly windows, no norm before the first attention.

Shapes: ``transformers`` 5.23 modeling_modernbert_decoder.py.
"""

from __future__ import annotations

from planner.model.ends import EndsSpec, HeadTransform
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads, read_layer_types, read_rope_base, windowed
from planner.model.hf_config.reader import MAX_LAYERS, ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, NormKind

FAMILY = "modernbert-decoder"


def import_modernbert_decoder(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a ModernBERT decoder; the first layer has one norm, the embedding's stands for the other."""
    keys = ClassKeys(reader, FAMILY)
    hidden, heads, count = (
        keys.width("hidden_size"),
        keys.integer("num_attention_heads"),
        keys.integer("num_hidden_layers"),
    )
    if count > MAX_LAYERS:
        reader.refuse("num_hidden_layers", f"must be at most {MAX_LAYERS}, is {count}")
        count = MAX_LAYERS
    norm: NormKind = "layer" if keys.on("norm_bias") else "layer_no_bias"
    head_dim, bias = divided_heads(reader, "num_attention_heads", hidden, heads), keys.on("attention_bias")
    attention = AttentionSpec(
        num_heads=heads, num_kv_heads=heads, head_dim=head_dim, v_head_dim=head_dim, qkv_bias=bias, output_bias=bias
    )
    mlp = MlpSpec(intermediate_size=keys.width("intermediate_size"), gated=True, bias=keys.on("mlp_bias"))
    layers = [
        LayerSpec(attention=windowed(attention, window), mlp=mlp, norm=norm, num_norms=2 if index else 1)
        for index, window in enumerate(_windows(keys, count))
    ]
    kinds, runs = runs_of(layers)
    return ModelSpec(
        name=name,
        family=FAMILY,
        hidden_size=hidden,
        vocab_size=keys.integer("vocab_size"),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=keys.on("tie_word_embeddings"),
        embedding_norm=True,
        head_bias=keys.on("decoder_bias"),
        max_sequence_length=keys.integer("max_position_embeddings"),
        ends=EndsSpec(transform=HeadTransform(width=hidden, bias=keys.on("classifier_bias"), norm=norm)),
        activation_function=keys.text("hidden_activation", "gelu"),
        rotary_base=read_rope_base(reader, 160000.0),
        norm_epsilon=keys.number("norm_eps", 1e-5),
    )


def _windows(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """One layer of ``global_attn_every_n_layers``, the first, sees all tokens, the others half ``local_attention``."""
    step = keys.reader.integer("global_attn_every_n_layers", default=3)
    local = keys.optional("local_attention", minimum=0) or 0
    keys.optional("sliding_window", minimum=0)  # the class computes it from local_attention
    slides = read_layer_types(keys.reader, num_layers, [index % step != 0 for index in range(num_layers)])
    return [local // 2 if slide and local > 1 else None for slide in slides]
