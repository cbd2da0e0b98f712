"""Cosmos (arXiv 2501.03575): attention to text states, with shift, scale and gate of all three blocks of a layer.

They are made of the time step by two narrow projections a block (AdaLN-LoRA, section 4.2.1).
Source: diffusers 0.42.1 ``models/transformers/transformer_cosmos.py``: 36-130 (ends), 330-440 (layers), 545-690 (the
class).
"""

from __future__ import annotations

from planner.model.denoiser import DenoiserSpec
from planner.model.diffusers_config.arguments import Arguments, Family
from planner.model.diffusers_config.crossed import crossed_layer, crossed_model
from planner.model.diffusers_config.parts import modulation, output, patches, per_sample
from planner.model.layer_parts import PartSpec
from planner.model.spec import MlpSpec, ModelSpec

COSMOS = Family(
    {
        "in_channels": 16,
        "out_channels": 16,
        "num_attention_heads": 32,
        "attention_head_dim": 128,
        "num_layers": 28,
        "mlp_ratio": 4.0,
        "text_embed_dim": 1024,
        "adaln_lora_dim": 256,
        "max_size": (128, 240, 240),
        "patch_size": (1, 2, 2),
        "rope_scale": (2.0, 1.0, 1.0),
        "concat_padding_mask": True,
        "extra_pos_embed_type": "learnable",
        "use_crossattn_projection": False,
        "crossattn_proj_in_channels": 1024,
        "encoder_hidden_states_channels": 1024,
        "controlnet_block_every_n": None,
        "img_context_dim_in": None,
        "img_context_num_tokens": 256,
        "img_context_dim_out": 2048,
    },
    text_tokens=512,
    usual_sample=(121, 704, 1280),
    compression=(8, 8),
    ignored=frozenset(
        {
            "rope_scale",
            "crossattn_proj_in_channels",
            "encoder_hidden_states_channels",
            "img_context_num_tokens",
            "img_context_dim_out",
        }
    ),
    fixed={
        "extra_pos_embed_type": ("learnable", None),
        "use_crossattn_projection": (False,),
        "controlnet_block_every_n": (None,),
        "img_context_dim_in": (None,),
    },
)
_BLOCKS = ("attention", "cross", "mlp")


def cosmos(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """Cosmos 1.0 and 2 (text, or pictures as channels of the latents)."""
    heads, patch, rank = keys.size("num_attention_heads"), keys.three("patch_size"), keys.size("adaln_lora_dim")
    hidden, channels = heads * keys.size("attention_head_dim"), keys.size("in_channels")
    volume, read = patch[0] * patch[1] * patch[2], channels + keys.on("concat_padding_mask")
    width = int(hidden * keys.number("mlp_ratio"))
    layer = crossed_layer(
        hidden,
        heads,
        width,
        keys.size("text_embed_dim"),
        norm="none_affine",
        cross_norm="none_affine",
        qk_norm="per_head",
        bias=(False, False),
    )
    made = (
        part.model_copy(update={"block": "mlp" if block == "mlp" else "attention"})
        for block in _BLOCKS
        for part in per_sample(f"{block}_conditioning", hidden, rank, 3 * hidden, bias=False)
    )
    cross = (part.model_copy(update={"name": f"cross_{part.name}"}) for part in modulation(hidden, "attention"))
    layer = layer.model_copy(
        update={
            "mlp": MlpSpec(intermediate_size=width, gated=False, bias=False),
            "parts": (*made, *modulation(hidden, "attention"), *cross, *modulation(hidden, "mlp")),
        }
    )
    sides = [size // step for size, step in zip(keys.three("max_size"), patch, strict=True)]
    places = PartSpec(name="positions", kind="scale", in_features=hidden, learned=sum(sides) * hidden)
    denoiser = DenoiserSpec(
        class_name=class_name,
        config=keys.changed(),
        entry=(
            patches(read * volume, hidden, bias=False),
            *((places,) if keys.value("extra_pos_embed_type") == "learnable" else ()),
            *per_sample("time_embedding", hidden, hidden, 3 * hidden, bias=False),
            PartSpec(name="time_norm", kind="held", in_features=hidden, learned=hidden),
        ),
        exit=(
            *per_sample("output_conditioning", hidden, rank, 2 * hidden, bias=False),
            *output(hidden, (keys.optional("out_channels") or channels) * volume, bias=False),
        ),
        patch=patch,
        compression=keys.family.compression,
        text_tokens=keys.family.text_tokens,
        text_in_sequence=False,
        usual_sample=keys.family.usual_sample,
    )
    return crossed_model(keys, hidden, layer, denoiser, name=name, position="rope")
