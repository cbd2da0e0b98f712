"""T5Gemma: a Gemma 2 as encoder and one as decoder with cross-attention, each with sizes of its own.

T5Gemma 2: a Gemma 3 with a SigLIP tower as encoder, and one as decoder, whose self-attention sees the source as well.

Shapes: ``transformers`` 5.23 modeling_t5gemma.py, modeling_t5gemma2.py.
"""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.decoder_reading import read_attention
from planner.model.hf_config.layer_rules import full_every
from planner.model.hf_config.layers import read_rope_base, windowed
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import EncoderStack, apart, joined, layer_count
from planner.model.hf_config.vision_towers import read_contrastive_tower
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.spec import LayerSpec, MlpSpec, ModelSpec

MODULE = "t5_gemma_module"
_ATTENTION = Decoder(softcap="attn_logit_softcapping", activation="hidden_activation")
SECOND = ("t5gemma2_text", "t5gemma2_decoder")
_SECOND_ATTENTION = replace(_ATTENTION, qk_norm="per_head")
_SECOND_PERIOD = 6


def import_t5gemma(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a T5Gemma; only the decoder's head is tied, the encoder has a token table of its own."""
    encoder, decoder = (ClassKeys(reader.child(side), MODULE) for side in ("encoder", "decoder"))
    width, hidden = encoder.width("hidden_size"), decoder.width("hidden_size")
    vocabulary = decoder.integer("vocab_size")
    reader.integer("vocab_size", default=vocabulary)  # the class takes the decoder's
    for keys in (encoder, decoder):
        keys.on("is_decoder")
    return joined(
        EncoderStack(
            _layers(encoder, width, None),
            "rms",
            width,
            [apart("source_token", encoder.integer("vocab_size"), width)],
        ),
        _layers(decoder, hidden, width),
        [],
        name=name,
        family="t5gemma",
        hidden_size=hidden,
        vocab_size=vocabulary,
        tie_embeddings=reader.boolean("tie_word_embeddings", default=True),
        max_sequence_length=decoder.integer("max_position_embeddings"),
        activation_function=decoder.text("hidden_activation", "gelu_pytorch_tanh"),
        rotary_base=read_rope_base(decoder.reader),
        norm_epsilon=decoder.number("rms_norm_eps", 1e-6),
    )


def import_t5gemma2(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a T5Gemma 2: one token table with a row for the end of an image, which the head has not."""
    both = reader.child("encoder")
    encoder, decoder = ClassKeys(both.child("text_config"), SECOND[0]), ClassKeys(reader.child("decoder"), SECOND[1])
    hidden, vocabulary = decoder.width("hidden_size"), decoder.integer("vocab_size")
    for key, size in (("hidden_size", hidden), ("vocab_size", vocabulary)):
        if encoder.integer(key) != size:
            encoder.reader.refuse(key, f"must equal the decoder's, {size}, is {encoder.integer(key)}")
    reader.integer("vocab_size", default=vocabulary)  # the class takes the decoder's
    tied = reader.boolean("tie_word_embeddings", default=True)
    vision = both.child("vision_config")
    tokens, width = both.integer("mm_tokens_per_image", default=256), vision.integer("hidden_size", default=768)
    tower = read_contrastive_tower(
        vision,
        kind="siglip_vision_model",
        projector_parameters=width * hidden + width,  # projection and the norm before it
        projector_flops=2 * tokens * width * hidden,
        tokens_per_image=tokens,
    )
    model = joined(
        EncoderStack(
            _layers(encoder, hidden, None, _SECOND_ATTENTION, _SECOND_PERIOD),
            "rms",
            hidden,
            [] if tied else [apart("source_token", vocabulary + 1, hidden)],
        ),
        _layers(decoder, hidden, hidden, _SECOND_ATTENTION, _SECOND_PERIOD, merged=True),
        [],
        name=name,
        family="t5gemma2",
        hidden_size=hidden,
        vocab_size=vocabulary,
        further_embedding_rows=1,
        tie_embeddings=tied,
        max_sequence_length=decoder.integer("max_position_embeddings"),
        activation_function=decoder.text("hidden_activation", "gelu_pytorch_tanh"),
        rotary_base=read_rope_base(decoder.reader, 1000000.0),
        norm_epsilon=decoder.number("rms_norm_eps", 1e-6),
    )
    return model.model_copy(update={"vision": tower})


def _layers(
    keys: ClassKeys,
    hidden: int,
    source_width: int | None,
    table: Decoder = _ATTENTION,
    period: int = 2,
    *,
    merged: bool = False,
) -> list[LayerSpec]:
    """Layers with a norm before and behind each branch; a decoder's if there is a source."""
    attention = read_attention(keys, table, hidden).model_copy(update={"causal": source_width is not None})
    bias = keys.on("attention_bias")
    cross = None
    if source_width is not None:
        keys.reader.integer("cross_attention_hidden_size", default=source_width)
        cross = CrossAttentionSpec.beside(attention, source_width, bias=bias, merged=merged)
    mlp = MlpSpec(intermediate_size=keys.width("intermediate_size"), gated=True)
    norms = 6 if cross and not merged else 4
    return [
        LayerSpec(attention=windowed(attention, window), cross=cross, mlp=mlp, num_norms=norms)
        for window in full_every(period)(keys, layer_count(keys, "num_hidden_layers"))
    ]
