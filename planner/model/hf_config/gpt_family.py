"""Decoders of the GPT kind: layer norm, ungated MLP, mostly with biases: gpt_neox, opt, bloom, mpt.

Defaults and shapes: ``transformers`` configuration and modeling files of each model type (5.x).
"""

from __future__ import annotations

from planner.model.hf_config.layers import (
    divided_heads,
    read_num_layers,
    read_partial_rotary,
    read_rope_base,
    read_vocabulary,
    read_width,
)
from planner.model.hf_config.reader import ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec

_OPT_POSITION_OFFSET = 2  # OPTLearnedPositionalEmbedding keeps two rows before position 0


def _attention(heads: int, head_dim: int, *, bias: bool, rotated: int | None = None) -> AttentionSpec:
    return AttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=bias,
        output_bias=bias,
        qk_rope_head_dim=rotated,
    )


def import_gpt_neox(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a GPT-NeoX: partly rotary positions, attention and MLP in parallel."""
    hidden = read_width(reader, "hidden_size", default=6144)
    heads = reader.integer("num_attention_heads", default=64)
    head_dim = divided_heads(reader, "num_attention_heads", hidden, heads)
    rotated = read_partial_rotary(reader, head_dim, 0.25, "rotary_pct", "partial_rotary_factor")
    layer = LayerSpec(
        attention=_attention(heads, head_dim, bias=reader.boolean("attention_bias", default=True), rotated=rotated),
        mlp=MlpSpec(intermediate_size=read_width(reader, "intermediate_size", default=24576), gated=False, bias=True),
        norm="layer",
        parallel_residual=reader.boolean("use_parallel_residual", default=True),
    )
    kinds, runs = runs_of([layer] * read_num_layers(reader, "num_hidden_layers", default=44))
    return ModelSpec(
        name=name,
        family="gpt_neox",
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 50432),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=False),
        max_sequence_length=reader.integer("max_position_embeddings", default=2048),
        activation_function=reader.text("hidden_act", default="gelu"),
        rotary_base=read_rope_base(reader, reader.number("rotary_emb_base", default=10000.0)),
        norm_epsilon=reader.number("layer_norm_eps", default=1e-5),
    )


def import_opt(reader: ConfigReader, name: str) -> ModelSpec:
    """Read an OPT: learned positions, token table narrower than the model in opt-350m, norms after it there too."""
    hidden = read_width(reader, "hidden_size", default=768)
    heads = reader.integer("num_attention_heads", default=12)
    bias = reader.boolean("enable_bias", default=True)
    pre_norm = reader.boolean("do_layer_norm_before", default=True)
    affine = reader.boolean("layer_norm_elementwise_affine", default=True)
    positions = reader.integer("max_position_embeddings", default=2048)
    embedding = reader.optional_integer("word_embed_proj_dim") or hidden
    layer = LayerSpec(
        attention=_attention(heads, divided_heads(reader, "num_attention_heads", hidden, heads), bias=bias),
        mlp=MlpSpec(intermediate_size=read_width(reader, "ffn_dim", default=3072), gated=False, bias=bias),
        norm="layer" if affine else "none_affine",
        norm_placement="pre" if pre_norm else "post_residual",
    )
    kinds, runs = runs_of([layer] * read_num_layers(reader, "num_hidden_layers", default=12))
    return ModelSpec(
        name=name,
        family="opt",
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 50272),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=True),
        learned_positions=positions + _OPT_POSITION_OFFSET,
        embedding_size=embedding if embedding != hidden else None,
        final_norm=pre_norm and not reader.boolean("_remove_final_layer_norm", default=False),
        max_sequence_length=positions,
        activation_function=reader.text("activation_function", default="relu"),
        position="learned",
    )


def import_bloom(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a BLOOM: ALiBi positions, a norm on the embedding, tied embeddings."""
    hidden = read_width(reader, "n_embed", "hidden_size", default=64)
    heads = reader.integer("n_head", "num_attention_heads", default=8)
    layer = LayerSpec(
        attention=_attention(heads, divided_heads(reader, "n_head", hidden, heads), bias=True),
        mlp=MlpSpec(intermediate_size=4 * hidden, gated=False, bias=True),
        norm="layer",
    )
    kinds, runs = runs_of([layer] * read_num_layers(reader, "n_layer", "num_hidden_layers", default=2))
    return ModelSpec(
        name=name,
        family="bloom",
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 250880),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=True),
        embedding_norm=True,
        max_sequence_length=reader.integer("seq_length", default=2048),
        activation_function="gelu",
        position="alibi",
        norm_epsilon=reader.number("layer_norm_epsilon", default=1e-5),
    )


def import_mpt(reader: ConfigReader, name: str) -> ModelSpec:
    """Read an MPT: ALiBi positions, no biases at all, tied embeddings."""
    hidden = read_width(reader, "d_model", "hidden_size", default=2048)
    heads = reader.integer("n_heads", "num_attention_heads", default=16)
    attention = reader.child("attn_config")
    kind = attention.text("attn_type", default="multihead_attention")
    if kind != "multihead_attention":
        attention.refuse("attn_type", f"{kind!r} is not supported", "the transformers class runs multihead_attention")
    ratio = reader.integer("expansion_ratio", default=4)
    if ratio != 4:
        reader.refuse("expansion_ratio", f"must be 4, the only one that the transformers class builds; is {ratio}")
    layer = LayerSpec(
        attention=_attention(heads, divided_heads(reader, "n_heads", hidden, heads), bias=False),
        mlp=MlpSpec(intermediate_size=4 * hidden, gated=False),
        norm="layer_no_bias",
    )
    kinds, runs = runs_of([layer] * read_num_layers(reader, "n_layers", "num_hidden_layers", default=24))
    return ModelSpec(
        name=name,
        family="mpt",
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 50368),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=True),
        max_sequence_length=reader.integer("max_seq_len", default=2048),
        activation_function="gelu",
        position="alibi",
        norm_epsilon=reader.number("layer_norm_epsilon", default=1e-5),
    )
