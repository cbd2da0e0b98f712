"""HunyuanVideo (arXiv 2412.03603): layers of two streams, then of one, behind layers that refine the text.

Source: diffusers 0.42.1 ``models/transformers/transformer_hunyuan_video.py``: 260-330 (conditions), 330-500 (refiner),
525-680 (layers), 870-990 (the class).
"""

from __future__ import annotations

from planner.model.diffusers_config.arguments import Arguments, Family
from planner.model.diffusers_config.joint import (
    double_stream,
    joint_denoiser,
    joint_model,
    made_output,
    single_stream,
)
from planner.model.diffusers_config.parts import TIME_FEATURES, patches, per_sample, text
from planner.model.layer_parts import PartSpec
from planner.model.spec import MlpSpec, ModelSpec

HUNYUAN_VIDEO = Family(
    {
        "in_channels": 16,
        "out_channels": 16,
        "num_attention_heads": 24,
        "attention_head_dim": 128,
        "num_layers": 20,
        "num_single_layers": 40,
        "num_refiner_layers": 2,
        "mlp_ratio": 4.0,
        "patch_size": 2,
        "patch_size_t": 1,
        "qk_norm": "rms_norm",
        "guidance_embeds": True,
        "text_embed_dim": 4096,
        "pooled_projection_dim": 768,
        "rope_theta": 256.0,
        "rope_axes_dim": (16, 56, 56),
        "image_condition_type": None,
    },
    text_tokens=256,
    usual_sample=(129, 720, 1280),
    compression=(4, 8),
    ignored=frozenset({"rope_theta", "rope_axes_dim"}),
    fixed={"qk_norm": ("rms_norm",), "image_condition_type": (None, "latent_concat", "token_replace")},
)
"""A picture is read as channels of the latents or in the place of the first frame: the same weights either way."""


def hunyuan_video(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """The layers are those of Flux; a token refiner of ``num_refiner_layers`` runs over the text alone."""
    heads, head_dim, space = keys.size("num_attention_heads"), keys.size("attention_head_dim"), keys.size("patch_size")
    hidden, channels, time = heads * head_dim, keys.size("in_channels"), keys.size("patch_size_t")
    read, volume, width = keys.size("text_embed_dim"), time * space**2, int(hidden * keys.number("mlp_ratio"))
    double = double_stream(
        heads, head_dim, qk_norm="per_head", mlp=MlpSpec(intermediate_size=width, gated=False, bias=True)
    )
    layers = [
        (double, keys.optional("num_layers", 0) or 0),
        (single_stream(heads, head_dim, width), keys.optional("num_single_layers", 0) or 0),
    ]
    guidance = per_sample("guidance_embedding", TIME_FEATURES, hidden, hidden) if keys.on("guidance_embeds") else ()
    entry = (
        patches(channels * volume, hidden),
        *per_sample("time_embedding", TIME_FEATURES, hidden, hidden),
        *guidance,
        *per_sample("pooled_text", keys.size("pooled_projection_dim"), hidden, hidden),
        *per_sample("refiner_time_embedding", TIME_FEATURES, hidden, hidden),
        *per_sample("refiner_pooled_text", read, hidden, hidden),
        *text(read, hidden),
        *(
            part
            for number in range(1, (keys.optional("num_refiner_layers", 0) or 0) + 1)
            for part in _refiner(f"refiner_{number}", hidden)
        ),
    )
    exit = made_output(hidden, (keys.optional("out_channels") or channels) * volume)
    denoiser = joint_denoiser(keys, class_name, entry, exit, (time, space, space))
    return joint_model(layers, denoiser, hidden, name=name, position="rope")


def _refiner(name: str, hidden: int) -> tuple[PartSpec, ...]:
    """One refining layer as parts: its attention between some hundred text tokens is left out (below 0.1 %)."""
    norm = {"kind": "norm", "in_features": hidden, "bias": True, "of_source": True}
    return (
        PartSpec.model_validate({"name": f"{name}_norm", **norm}),
        *text(hidden, 3 * hidden, name=f"{name}_qkv"),
        *text(hidden, hidden, name=f"{name}_output"),
        PartSpec.model_validate({"name": f"{name}_mlp_norm", **norm}),
        *text(hidden, 4 * hidden, hidden, name=f"{name}_mlp"),
        *per_sample(f"{name}_gates", hidden, 2 * hidden),
    )
