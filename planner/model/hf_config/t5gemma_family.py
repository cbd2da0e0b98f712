"""T5Gemma: a Gemma 2 as encoder and one as decoder with cross-attention, each with sizes of its own.

Shapes: ``transformers`` 5.23 modeling_t5gemma.py.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.decoder_reading import read_attention
from planner.model.hf_config.layer_rules import full_every
from planner.model.hf_config.layers import read_rope_base, windowed
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import EncoderStack, apart, joined, layer_count
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.spec import LayerSpec, MlpSpec, ModelSpec

MODULE = "t5_gemma_module"
_ATTENTION = Decoder(softcap="attn_logit_softcapping", activation="hidden_activation")


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


def _layers(keys: ClassKeys, hidden: int, source_width: int | None) -> list[LayerSpec]:
    """Layers with a norm before and behind each branch; a decoder's if there is a source."""
    attention = read_attention(keys, _ATTENTION, hidden).model_copy(update={"causal": source_width is not None})
    bias = keys.on("attention_bias")
    cross = None
    if source_width is not None:
        keys.reader.integer("cross_attention_hidden_size", default=source_width)
        cross = CrossAttentionSpec(
            num_heads=attention.num_heads,
            num_kv_heads=attention.num_kv_heads,
            head_dim=attention.head_dim,
            source_width=source_width,
            query_bias=bias,
            key_bias=bias,
            value_bias=bias,
            output_bias=bias,
        )
    mlp = MlpSpec(intermediate_size=keys.width("intermediate_size"), gated=True)
    return [
        LayerSpec(attention=windowed(attention, window), cross=cross, mlp=mlp, num_norms=6 if cross else 4)
        for window in full_every(2)(keys, layer_count(keys, "num_hidden_layers"))
    ]
