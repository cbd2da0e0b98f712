"""Tokenizers of images that stand in a model: convolutional encoders (and decoders) around a codebook.

Shapes: ``transformers`` 5.23, chameleon, janus and emu3.  The classes keep these modules frozen; their weights are
among the module's parameters all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_parts import Part, attention, convolution, linear, norm, table

Norm = Callable[[int], Part]


def group_norm(width: int) -> Part:
    """Scale and shift a channel."""
    return norm(width)


def residual_block(inputs: int, outputs: int, places: int, normed: Norm = group_norm) -> Part:
    """Two norms, two convolutions 3 x 3, and one 1 x 1 where the width changes."""
    part = normed(inputs) + normed(outputs)
    part += convolution(inputs, outputs, 9, places, bias=True) + convolution(outputs, outputs, 9, places, bias=True)
    return part + (convolution(inputs, outputs, 1, places, bias=True) if inputs != outputs else Part())


def attention_block(width: int, places: int, normed: Norm = group_norm) -> Part:
    """A norm and one attention over all places."""
    return normed(width) + attention(width, places, places)


def _levels(keys: ClassKeys) -> tuple[int, list[int]]:
    base = keys.integer("base_channels")
    return base, [
        base * each for each in keys.reader.integers("channel_multiplier", keys.defaults["channel_multiplier"])
    ]


def _middle(width: int, places: int, normed: Norm) -> Part:
    blocks = residual_block(width, width, places, normed).times(2)
    return blocks + attention_block(width, places, normed)


def encoder(keys: ClassKeys, side: int, attends: Callable[[int, int], bool]) -> Part:
    """From pixels to latents; ``attends`` says of a level and its side whether its blocks hold attention."""
    base, levels = _levels(keys)
    blocks = keys.integer("num_res_blocks")
    part = convolution(keys.integer("in_channels"), base, 9, side**2, bias=True)
    width = base
    for level, outputs in enumerate(levels):
        for _ in range(blocks):
            part += residual_block(width, outputs, side**2)
            width = outputs
            part += attention_block(width, side**2) if attends(level, side) else Part()
        if level < len(levels) - 1:
            side //= 2
            part += convolution(width, width, 9, side**2, bias=True)
    latent = keys.integer("latent_channels") * (2 if keys.on("double_latent") else 1)
    part += _middle(width, side**2, group_norm) + group_norm(width)
    return part + convolution(width, latent, 9, side**2, bias=True)


def decoder(keys: ClassKeys, attends: Callable[[int], bool], normed: Norm = group_norm) -> Part:
    """From latents to pixels: weights alone, for no image of the training data runs through it."""
    _, levels = _levels(keys)
    blocks, width = keys.integer("num_res_blocks") + 1, levels[-1]
    part = convolution(keys.integer("latent_channels"), width, 9, 0, bias=True) + _middle(width, 0, normed)
    for level in reversed(range(len(levels))):
        for _ in range(blocks):
            part += residual_block(width, levels[level], 0, normed)
            width = levels[level]
            part += attention_block(width, 0, normed) if attends(level) else Part()
        part += convolution(width, width, 9, 0, bias=True) if level else Part()
    return part + normed(width) + convolution(width, keys.integer("out_channels"), 9, 0, bias=True)


def chameleon_tokenizer(keys: ClassKeys) -> tuple[Part, int]:
    """Encoder and codebook, and the tokens of one image."""
    side, size = keys.integer("resolution"), keys.integer("embed_dim")
    listed = set(keys.reader.integers("attn_resolutions", []))
    kind = keys.text("attn_type", "vanilla")
    part = encoder(keys, side, lambda _, at: at in listed and kind == "vanilla")
    if kind != "vanilla":
        keys.reader.refuse("attn_type", f"must be 'vanilla', is {kind[:40]!r}")
    places = (side >> (len(_levels(keys)[1]) - 1)) ** 2
    return part + _quantizer(keys, keys.integer("num_embeddings"), size, places), places


def _quantizer(keys: ClassKeys, codes: int, size: int, places: int) -> Part:
    latent = keys.integer("latent_channels")
    ends = linear(latent, size, places) + linear(size, latent, 0)
    return ends + table(codes, size) + Part(0, 2 * places * codes * size)


def janus_tokenizer(keys: ClassKeys) -> Part:
    """Encoder, decoder, codebook, and the embeddings and the head that generate images; weights alone.

    An image that is understood goes through the other tower.
    """
    last = len(_levels(keys)[1]) - 1
    codes, size, width = keys.integer("num_embeddings"), keys.integer("embed_dim"), keys.integer("projection_dim")
    part = encoder(keys, 1 << last, lambda level, _: level == last) + decoder(keys, lambda level: level == last)
    part += _quantizer(keys, codes, size, 0) + table(codes, size)
    part += linear(size, width, 0) + linear(width, width, 0).times(keys.integer("num_hidden_layers") - 1)
    return (part + linear(keys.integer("image_token_embed_dim"), width, 0) + linear(width, codes, 0)).idle()


def emu3_tokenizer(keys: ClassKeys, side: int) -> tuple[Part, int]:
    """Encoder, decoder and codebook with convolutions over time, and the tokens of one image of ``side`` pixels."""
    _, levels = _levels(keys)
    latent, size = keys.integer("latent_channels"), keys.integer("embed_dim")
    attending = set(keys.reader.integers("attn_resolutions", keys.defaults.get("attn_resolutions") or []))
    wide = keys.integer("hidden_size")
    for level in sorted({*attending, len(levels) - 1}):
        if level < len(levels) and levels[level] != wide:
            keys.reader.refuse("hidden_size", f"must equal the {levels[level]} channels that attention sees, is {wide}")

    def spatial(width: int) -> Part:
        return norm(width) + convolution(size, width, 1, 0, bias=True).times(2)

    side = side >> (len(levels) - 1) << (len(levels) - 1)
    places = (side >> (len(levels) - 1)) ** 2
    out = latent * (2 if keys.on("double_latent") else 1)
    halvings, blocks = int(log2(keys.integer("temporal_downsample_factor"))), keys.integer("num_res_blocks")
    frames = keys.integer("temporal_downsample_factor")
    one = encoder(keys, side, lambda level, _: level in attending)
    part = Part(one.parameters, one.flops * frames) + _time_block(out, places).times(blocks)  # an image is repeated
    for step in range(halvings):
        part += convolution(out, out, 36, places * (frames >> (step + 1)), bias=True)
    upper = decoder(keys, lambda level: level in attending, spatial) + _time_block(latent, 0).times(blocks)
    upper += convolution(latent, latent, 27, 0, bias=True).times(halvings)
    codes = keys.integer("codebook_size")
    ends = convolution(latent, size, 3, places, bias=True) + convolution(size, latent, 3, 0, bias=True)
    codebook = table(codes, size) + Part(0, 2 * places * codes * size)
    return part + upper.idle() + ends + codebook, places


def _time_block(width: int, places: int) -> Part:
    return (norm(width) + convolution(width, width, 27, places, bias=True)).times(2)
