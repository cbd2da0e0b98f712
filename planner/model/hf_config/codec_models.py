"""A decoder of text and audio tokens beside the codec that makes the tokens: kyutai_speech_to_text.

Shapes: ``transformers`` 5.23 modeling_kyutai_speech_to_text.py and modeling_mimi.py.  The class holds the whole codec;
its forward pass reads tokens, so the codec is memory without work: data that is prepared holds its tokens already.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from planner.model.hf_config.audio_models import MOSHI
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder_reading import import_decoder
from planner.model.hf_config.image_parts import Part, convolution, linear, norm, total
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.reader import ConfigReader
from planner.model.layer_parts import PartSpec
from planner.model.spec import ModelSpec

KYUTAI = replace(MOSHI, even_heads=False)
_RATIOS = [8, 6, 5, 4]
_HALVES = ("encoder_config", "decoder_config")
_STEP = 2
"""Frames of the convolutions in one token; the class has no key for it."""


def import_kyutai(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Kyutai speech-to-text: a Moshi decoder over text and the tokens of every codebook, with Mimi held.

    A position is the sum of one row of text and one of each codebook, all from one table, which is split as a
    vocabulary; the time of one look-up is counted, not of ``num_codebooks`` more (each as many bytes as a residual).
    """
    keys = ClassKeys(reader, "kyutai_speech_to_text")
    model = import_decoder(reader, name, "kyutai_speech_to_text", KYUTAI)
    if keys.on("tie_word_embeddings"):
        reader.refuse("tie_word_embeddings", "must be false: the token table has rows of audio that the head has not")
    rows = keys.integer("num_codebooks") * keys.integer("codebook_vocab_size") + 1
    codec = ClassKeys(reader.child("codec_config"), "mimi")
    held = PartSpec(
        name="codec", kind="held", in_features=codec.width("hidden_size"), learned=_mimi(codec, _ratios(codec))
    )
    changed: dict[str, Any] = {"further_embedding_rows": rows, "entry_parts": (*model.entry_parts, held)}
    return model.model_copy(update=changed)


def _ratios(keys: ClassKeys) -> list[int]:
    """Strides of the convolutions, from the slowest; the class takes its own for an empty list."""
    ratios = keys.reader.integers("upsampling_ratios", _RATIOS) or _RATIOS
    if 0 in ratios or len(ratios) > 16:
        keys.reader.refuse("upsampling_ratios", "must be at most 16 strides above 0")
        return _RATIOS
    return ratios


def _mimi(keys: ClassKeys, ratios: list[int]) -> int:
    """Learned scalars of the codec: two halves and the projections of both quantizers; codebooks are buffers."""
    for half in _HALVES:
        if half in keys.reader.data:
            keys.reader.refuse(half, "asks for half a codec, which is not modelled", f"remove {half}")
    width, inner = keys.width("hidden_size"), keys.width("vector_quantization_hidden_dimension")
    halves = total([_transformer(keys, width).times(2), *_convolutions(keys, width, ratios)])
    quantizers = linear(width, inner, 0, bias=False).times(2 * 2) if inner != width else Part()
    return (halves + quantizers + _resampled(keys, width, ratios)).parameters


def _transformer(keys: ClassKeys, width: int) -> Part:
    """The layers of one half, each with two norms and two scales."""
    heads, inner, bias = keys.integer("num_attention_heads"), keys.width("intermediate_size"), keys.on("attention_bias")
    head_dim = keys.optional("head_dim") or divided_heads(keys.reader, "num_attention_heads", width, heads)
    sources = keys.integer("num_key_value_heads") * head_dim
    layer = linear(width, heads * head_dim, 0, bias=bias) + linear(width, sources, 0, bias=bias).times(2)
    layer += linear(heads * head_dim, width, 0, bias=bias) + linear(width, inner, 0, bias=False).times(2)
    return (layer + norm(width).times(2) + norm(width, bias=False).times(2)).times(keys.integer("num_hidden_layers"))


def _convolutions(keys: ClassKeys, width: int, ratios: list[int]) -> list[Part]:
    """Convolutions of both halves: a stage a stride, whose width doubles with every stage."""
    first, channels = keys.width("num_filters"), keys.integer("audio_channels")
    ends = keys.integer("kernel_size"), keys.integer("last_kernel_size")
    last = first * 2 ** len(ratios)
    found = [_convolution(channels, first, ends[0]), _convolution(last, width, ends[1])]
    found += [_convolution(width, last, ends[0]), _convolution(first, channels, ends[1])]
    blocks = keys.integer("num_residual_layers")
    for stage, ratio in enumerate(reversed(ratios)):
        narrow = first * 2**stage
        down, up = _convolution(narrow, 2 * narrow, 2 * ratio), _convolution(2 * narrow, narrow, 2 * ratio)
        found += [down, up, _block(keys, narrow).times(2 * blocks)]
    return found


def _convolution(inputs: int, outputs: int, kernel: int) -> Part:
    return convolution(inputs, outputs, kernel, 0, bias=True)


def _block(keys: ClassKeys, width: int) -> Part:
    """Two convolutions over a narrower width, and perhaps one beside them."""
    narrow = width // keys.integer("compress")
    if narrow == 0:
        keys.reader.refuse("compress", f"must be at most {width}, the width of the first stage")
    shortcut = _convolution(width, width, 1) if keys.on("use_conv_shortcut") else Part()
    kernel = keys.integer("residual_kernel_size")
    return _convolution(width, narrow, kernel) + _convolution(narrow, width, 1) + shortcut


def _resampled(keys: ClassKeys, width: int, ratios: list[int]) -> Part:
    """Convolutions between the frames of the two halves and the codec's tokens, where their rates differ."""
    sampling, stride = keys.integer("sampling_rate"), math.prod(ratios)
    frames, groups = math.ceil(sampling / stride), keys.integer("upsample_groups")
    # The class writes a given rate under the second name.
    given = keys.reader.optional_number("frame_rate", default=None) or keys.reader.optional_number("_frame_rate")
    tokens = given or sampling / (_STEP * stride)
    if frames == tokens:
        return Part()
    if width % groups:
        keys.reader.refuse("upsample_groups", f"must divide the width {width}, is {groups}")
    kernel = 2 * int(frames / tokens)
    return convolution(width, width, kernel, 0) + convolution(width, max(width // groups, 1), kernel, 0)
