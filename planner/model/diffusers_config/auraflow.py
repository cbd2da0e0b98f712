"""AuraFlow (fal, 2024): layers of two streams, then of one, without biases, with gated MLPs and learned positions.

Source: diffusers 0.42.1 ``models/transformers/auraflow_transformer_2d.py``: 45-140 (ends), 142-275 (layers), 277-370
(the class), and its ``forward``, which puts eight register tokens before the text.
"""

from __future__ import annotations

from math import isqrt

from planner.model.diffusers_config.arguments import Arguments, Family
from planner.model.diffusers_config.joint import attention, double_stream, joint_denoiser, joint_model
from planner.model.diffusers_config.parts import (
    TIME_FEATURES,
    made_modulation,
    modulation,
    output,
    patches,
    per_sample,
    text,
)
from planner.model.layer_parts import PartSpec
from planner.model.spec import LayerSpec, MlpSpec, ModelSpec

REGISTERS = 8
AURAFLOW = Family(
    {
        "sample_size": 64,
        "patch_size": 2,
        "in_channels": 4,
        "num_mmdit_layers": 4,
        "num_single_dit_layers": 32,
        "attention_head_dim": 256,
        "num_attention_heads": 12,
        "joint_attention_dim": 2048,
        "caption_projection_dim": 3072,
        "out_channels": 4,
        "pos_embed_max_size": 1024,
    },
    text_tokens=256 + REGISTERS,
    usual_sample=(1, 1024, 1024),
    compression=(1, 8),
    ignored=frozenset({"sample_size"}),
)
"""Registers are counted as text: they stand in the sequence, and no output is made of them."""
_MULTIPLE = 256


def auraflow(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """The MLP is two thirds of four times the width, rounded up to whole 256."""
    heads, head_dim, patch = keys.size("num_attention_heads"), keys.size("attention_head_dim"), keys.size("patch_size")
    hidden, channels, places = heads * head_dim, keys.size("in_channels"), keys.size("pos_embed_max_size")
    if keys.size("caption_projection_dim") != hidden:
        keys.reader.refuse("caption_projection_dim", f"must be {hidden}, the width of the layers")
    width = -(-int(2 * 4 * hidden / 3) // _MULTIPLE) * _MULTIPLE
    mlp = MlpSpec(intermediate_size=width, gated=True, bias=False)
    single = LayerSpec(
        attention=attention(heads, head_dim),
        mlp=mlp,
        norm="none_affine",
        num_norms=2,
        parts=(
            made_modulation("conditioning", "attention", hidden, 6 * hidden, bias=False),
            *modulation(hidden, "attention"),
            *modulation(hidden, "mlp"),
        ),
    )
    layers = [
        (
            double_stream(heads, head_dim, qk_norm="none", mlp=mlp, bias=False),
            keys.optional("num_mmdit_layers", 0) or 0,
        ),
        (single, keys.optional("num_single_dit_layers", 0) or 0),
    ]
    entry = (
        patches(channels * patch**2, hidden),
        PartSpec(name="positions", kind="scale", in_features=hidden, learned=places * hidden),
        *per_sample("time_embedding", TIME_FEATURES, hidden, hidden),
        *text(keys.size("joint_attention_dim"), hidden, bias=False),
        PartSpec(name="registers", kind="held", in_features=hidden, learned=REGISTERS * hidden),
    )
    exit = (
        *per_sample("output_conditioning", hidden, 2 * hidden, bias=False),
        *output(hidden, (keys.optional("out_channels") or channels) * patch**2, bias=False)[1:],
    )
    side = min(keys.family.usual_sample[1], isqrt(places) * patch * keys.family.compression[1])
    denoiser = joint_denoiser(keys, class_name, entry, exit, (1, patch, patch)).model_copy(
        update={"usual_sample": (1, side, side)}
    )
    return joint_model(layers, denoiser, hidden, name=name, position="none").model_copy(
        update={"activation_function": "silu"}
    )
