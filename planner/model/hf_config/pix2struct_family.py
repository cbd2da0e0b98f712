"""Pix2Struct: patches of an image through an encoder, text through a decoder, both of the T5 kind with gated MLPs.

Shapes: ``transformers`` 5.23 modeling_pix2struct.py.
"""

from __future__ import annotations

from planner.model.encoder import PatchFront
from planner.model.ends import AddedTable
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import EncoderStack, joined, layer_count
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.mixers.softmax import PositionBias
from planner.model.spec import UNBOUNDED, AttentionSpec, LayerSpec, MlpSpec, ModelSpec

PARTS = ("pix2struct_text_model", "pix2struct_vision_model")


def import_pix2struct(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Pix2Struct; how many patches an image gives is the source's length, and not said by the config."""
    text, vision = (
        ClassKeys(reader.child(key), kind) for key, kind in zip(("text_config", "vision_config"), PARTS, strict=True)
    )
    hidden, width = text.width("hidden_size"), vision.width("hidden_size")
    if width != hidden:
        vision.reader.refuse("hidden_size", f"must be that of the text model, {hidden}, is {width}")
    rows = vision.integer("seq_len")
    tables = [AddedTable(name=f"source_{name}", rows=rows, width=width) for name in ("row", "column")]
    front = PatchFront(input_width=vision.width("patch_embed_hidden_size"))
    heads, head_dim, count = text.integer("num_heads"), text.integer("d_kv"), layer_count(text, "num_layers")
    if heads * head_dim != hidden:
        text.reader.refuse("d_kv", f"must be the width {hidden} over {heads} heads: the class projects to all of it")
    buckets = text.integer("relative_attention_num_buckets")
    cross = CrossAttentionSpec(num_heads=heads, num_kv_heads=heads, head_dim=head_dim, source_width=hidden)
    decoder = [
        LayerSpec(
            attention=_attention(heads, head_dim, _bias(buckets, index, count)),
            cross=cross,
            mlp=MlpSpec(intermediate_size=text.width("d_ff"), gated=True),
            num_norms=3,
        )
        for index in range(count)
    ]
    layer = LayerSpec(
        attention=_attention(vision.integer("num_attention_heads"), vision.integer("d_kv"), None),
        mlp=MlpSpec(intermediate_size=vision.width("d_ff"), gated=True),
    )
    encoder = [layer] * layer_count(vision, "num_hidden_layers")
    return joined(
        EncoderStack(encoder, "rms", hidden, tables, front=front),
        decoder,
        [],
        name=name,
        family="pix2struct",
        hidden_size=hidden,
        vocab_size=text.integer("vocab_size"),
        tie_embeddings=_tied(reader, text),
        max_sequence_length=UNBOUNDED,
        activation_function=text.text("dense_act_fn", "gelu_new"),
        position="none",
        norm_epsilon=text.number("layer_norm_epsilon", 1e-6),
    )


def _tied(reader: ConfigReader, text: ClassKeys) -> bool:
    """The text model's own key says it; the key of the whole reaches no table."""
    reader.boolean("tie_word_embeddings", default=False)
    return text.on("tie_word_embeddings")


def _attention(heads: int, head_dim: int, bias: PositionBias | None) -> AttentionSpec:
    return AttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        causal=bias is not None,
        position_bias=bias,
    )


def _bias(buckets: int, index: int, count: int) -> PositionBias:
    """The first layer's table serves all."""
    return PositionBias(buckets=buckets, shared=index > 0, serves=index == 0 and count > 1)
