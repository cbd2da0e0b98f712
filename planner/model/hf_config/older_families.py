"""Older decoders whose keys decide more than one thing: falcon, gpt_bigcode, gpt_neox_japanese.

Defaults and shapes: ``transformers`` 5.23 configuration and modeling files.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads, read_rope_base
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import layer_count
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, PositionKind


def _attention(heads: int, kv_heads: int, head_dim: int, *, qkv_bias: bool, output_bias: bool) -> AttentionSpec:
    return AttentionSpec(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=qkv_bias,
        output_bias=output_bias,
    )


def _spec(
    keys: ClassKeys,
    name: str,
    family: str,
    hidden: int,
    layers: list[LayerSpec],
    *,
    positions: str,
    position: PositionKind,
    activation: str,
    epsilon: str,
) -> ModelSpec:
    kinds, runs = runs_of(layers)
    length = keys.integer(positions)
    return ModelSpec(
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=keys.integer("vocab_size"),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=keys.on("tie_word_embeddings"),
        learned_positions=length if position == "learned" else 0,
        max_sequence_length=length,
        activation_function=keys.text(activation, "gelu"),
        position=position,
        rotary_base=read_rope_base(keys.reader),
        norm_epsilon=keys.number(epsilon, 1e-5),
    )


def import_falcon(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Falcon: one key-value head, or some with two norms in the newer architecture; rotary or ALiBi."""
    keys = ClassKeys(reader, "falcon")
    hidden, heads = keys.width("hidden_size"), keys.integer("num_attention_heads")
    newer, parallel = keys.on("new_decoder_architecture"), keys.on("parallel_attn")
    multi_query, named = keys.on("multi_query"), keys.optional("num_kv_heads") or heads
    kv_heads = named if newer else 1 if multi_query else heads
    norms = keys.optional("num_ln_in_parallel_attn") or (2 if newer else 1)
    if newer and not parallel:
        reader.refuse("parallel_attn", "must be true in the newer architecture")
    if heads % kv_heads:
        reader.refuse("num_kv_heads", f"must divide num_attention_heads = {heads}, is {kv_heads}")
        kv_heads = heads
    bias = keys.on("bias")
    layer = LayerSpec(
        attention=_attention(
            heads,
            kv_heads,
            divided_heads(reader, "num_attention_heads", hidden, heads),
            qkv_bias=bias,
            output_bias=bias,
        ),
        mlp=MlpSpec(intermediate_size=keys.optional("ffn_hidden_size") or 4 * hidden, gated=False, bias=bias),
        norm="layer",
        num_norms=(norms if newer else 1) if parallel else 2,
        parallel_residual=parallel,
    )
    return _spec(
        keys,
        name,
        "falcon",
        hidden,
        [layer] * layer_count(keys, "num_hidden_layers"),
        positions="max_position_embeddings",
        position="alibi" if keys.on("alibi") else "rope",
        activation="activation",
        epsilon="layer_norm_epsilon",
    )


def import_gpt_bigcode(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a StarCoder of the first kind: a GPT-2 with one key-value head."""
    keys = ClassKeys(reader, "gpt_bigcode")
    if keys.on("add_cross_attention"):
        reader.refuse("add_cross_attention", "is not supported: only decoder-only models can be planned")
    hidden, heads = keys.width("n_embd"), keys.integer("n_head")
    keys.optional("num_key_value_heads")  # the class derives it from multi_query
    head_dim = divided_heads(reader, "n_head", hidden, heads)
    kv_heads = 1 if keys.on("multi_query") else heads
    layer = LayerSpec(
        attention=_attention(heads, kv_heads, head_dim, qkv_bias=True, output_bias=True),
        mlp=MlpSpec(intermediate_size=keys.optional("n_inner") or 4 * hidden, gated=False, bias=True),
        norm="layer",
    )
    return _spec(
        keys,
        name,
        "gpt_bigcode",
        hidden,
        [layer] * layer_count(keys, "n_layer"),
        positions="n_positions",
        position="learned",
        activation="activation_function",
        epsilon="layer_norm_epsilon",
    )


def import_gpt_neox_japanese(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Japanese GPT-NeoX: no biases, but one on the output projection of the last layer."""
    keys = ClassKeys(reader, "gpt_neox_japanese")
    hidden, heads = keys.width("hidden_size"), keys.integer("num_attention_heads")
    head_dim = divided_heads(reader, "num_attention_heads", hidden, heads)
    mlp = MlpSpec(intermediate_size=keys.integer("intermediate_multiple_size") * hidden, gated=False)
    count = layer_count(keys, "num_hidden_layers")
    layers = [
        LayerSpec(
            attention=_attention(heads, heads, head_dim, qkv_bias=False, output_bias=layer == count - 1),
            mlp=mlp,
            norm="layer",
        )
        for layer in range(count)
    ]
    return _spec(
        keys,
        name,
        "gpt_neox_japanese",
        hidden,
        layers,
        positions="max_position_embeddings",
        position="rope",
        activation="hidden_act",
        epsilon="layer_norm_eps",
    )
