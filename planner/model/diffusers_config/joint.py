"""Classes whose layers attend to text and latent tokens as one sequence: Flux, SD3, Qwen-Image, CogVideoX.

Sources: diffusers 0.42.1 ``models/transformers/``: transformer_flux.py:356-480, 632-705; transformer_sd3.py:140-185
with ``models/attention.py`` (JointTransformerBlock); transformer_qwenimage.py:590-740, 816-866;
cogvideox_transformer_3d.py:60-125, 215-335 with ``models/normalization.py`` (CogVideoXLayerNormZero).
"""

from __future__ import annotations

from typing import Any, Literal

from planner.model.denoiser import DenoiserSpec, JointSpec
from planner.model.diffusers_config.arguments import Arguments, Family
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
from planner.model.mixers.kinds import NormKind
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec

FLUX = Family(
    {
        "patch_size": 1,
        "in_channels": 64,
        "out_channels": None,
        "num_layers": 19,
        "num_single_layers": 38,
        "attention_head_dim": 128,
        "num_attention_heads": 24,
        "joint_attention_dim": 4096,
        "pooled_projection_dim": 768,
        "guidance_embeds": False,
        "axes_dims_rope": (16, 56, 56),
    },
    text_tokens=512,
    usual_sample=(1, 1024, 1024),
    compression=(1, 8),
    packed=2,
    ignored=frozenset({"axes_dims_rope"}),
)

SD3 = Family(
    {
        "sample_size": 128,
        "patch_size": 2,
        "in_channels": 16,
        "num_layers": 18,
        "attention_head_dim": 64,
        "num_attention_heads": 18,
        "joint_attention_dim": 4096,
        "caption_projection_dim": 1152,
        "pooled_projection_dim": 2048,
        "out_channels": 16,
        "pos_embed_max_size": 96,
        "dual_attention_layers": (),
        "qk_norm": None,
    },
    text_tokens=333,
    usual_sample=(1, 1024, 1024),
    compression=(1, 8),
    ignored=frozenset({"sample_size", "pos_embed_max_size"}),
    fixed={"dual_attention_layers": ((),), "qk_norm": (None, "rms_norm")},
)
"""Text: 77 tokens of CLIP and 256 of T5 (pipelines/stable_diffusion_3)."""

QWEN_IMAGE = Family(
    {
        "patch_size": 2,
        "in_channels": 64,
        "out_channels": 16,
        "num_layers": 60,
        "attention_head_dim": 128,
        "num_attention_heads": 24,
        "joint_attention_dim": 3584,
        "guidance_embeds": False,
        "axes_dims_rope": (16, 56, 56),
        "zero_cond_t": False,
        "use_additional_t_cond": False,
        "use_layer3d_rope": False,
    },
    text_tokens=512,
    usual_sample=(1, 1328, 1328),
    compression=(1, 8),
    packed=2,
    ignored=frozenset({"axes_dims_rope", "guidance_embeds", "use_layer3d_rope"}),
    leftovers=frozenset({"pooled_projection_dim"}),
    fixed={"zero_cond_t": (False,), "use_additional_t_cond": (False,)},
)

COGVIDEOX = Family(
    {
        "num_attention_heads": 30,
        "attention_head_dim": 64,
        "in_channels": 16,
        "out_channels": 16,
        "flip_sin_to_cos": True,
        "freq_shift": 0,
        "time_embed_dim": 512,
        "ofs_embed_dim": None,
        "text_embed_dim": 4096,
        "num_layers": 30,
        "dropout": 0.0,
        "attention_bias": True,
        "sample_width": 90,
        "sample_height": 60,
        "sample_frames": 49,
        "patch_size": 2,
        "patch_size_t": None,
        "temporal_compression_ratio": 4,
        "max_text_seq_length": 226,
        "activation_fn": "gelu-approximate",
        "timestep_activation_fn": "silu",
        "norm_elementwise_affine": True,
        "norm_eps": 1e-5,
        "spatial_interpolation_scale": 1.875,
        "temporal_interpolation_scale": 1.0,
        "use_rotary_positional_embeddings": False,
        "use_learned_positional_embeddings": False,
        "patch_bias": True,
    },
    text_tokens=226,
    usual_sample=(49, 480, 720),
    compression=(4, 8),
    ignored=frozenset(
        {
            "flip_sin_to_cos",
            "freq_shift",
            "sample_width",
            "sample_height",
            "sample_frames",
            "timestep_activation_fn",
            "spatial_interpolation_scale",
            "temporal_interpolation_scale",
            "use_learned_positional_embeddings",
        }
    ),
    fixed={"dropout": (0.0, 0), "activation_fn": ("gelu", "gelu-approximate")},
)
"""Its tables of positions, learned or not, are buffers: they hold no gradients."""


def attention(heads: int, head_dim: int, **more: Any) -> AttentionSpec:
    """Attention to every token, with a key and a value of each head."""
    return AttentionSpec(
        num_heads=heads, num_kv_heads=heads, head_dim=head_dim, v_head_dim=head_dim, causal=False, **more
    )


def double_stream(
    heads: int,
    head_dim: int,
    *,
    qk_norm: Literal["none", "per_head"],
    text_ends: bool = False,
    mlp: MlpSpec | None = None,
    bias: bool = True,
) -> LayerSpec:
    """A layer with two sets of weights; each stream's shift, scale and gate are six vectors made of the time step.

    Where the text ends its norm has two (AdaLayerNormContinuous).  ``mlp``: four times as wide unless it is given;
    ``bias``: of attention and of what makes the six vectors.
    """
    hidden = heads * head_dim
    return LayerSpec(
        attention=attention(heads, head_dim, qkv_bias=bias, output_bias=bias, qk_norm=qk_norm),
        mlp=mlp or MlpSpec(intermediate_size=4 * hidden, gated=False, bias=True),
        joint=JointSpec(text_ends=text_ends),
        norm="none_affine",
        num_norms=2,
        parts=(
            made_modulation("latent_conditioning", "attention", hidden, 6 * hidden, bias=bias),
            made_modulation("text_conditioning", "attention", hidden, (2 if text_ends else 6) * hidden, bias=bias),
            *modulation(hidden, "attention"),
            *modulation(hidden, "mlp"),
        ),
    )


def single_stream(heads: int, head_dim: int, mlp_width: int) -> LayerSpec:
    """A layer where attention and MLP read one norm and give one sum, through one projection of both."""
    hidden = heads * head_dim
    return LayerSpec(
        attention=attention(heads, head_dim, qkv_bias=True, output_bias=False, qk_norm="per_head"),
        mlp=MlpSpec(intermediate_size=mlp_width, gated=False, bias=True),
        norm="none_affine",
        num_norms=1,
        parallel_residual=True,
        parts=(
            made_modulation("conditioning", "attention", hidden, 3 * hidden),
            *modulation(hidden, "attention"),
        ),
    )


def joint_model(layers: list[tuple[LayerSpec, int]], denoiser: DenoiserSpec, hidden: int, **more: Any) -> ModelSpec:
    """Layers with their counts, between the ends of ``denoiser``; those of count 0 are left out."""
    kept = [(layer, count) for layer, count in layers if count]
    return ModelSpec(
        family=denoiser.class_name,
        hidden_size=hidden,
        vocab_size=0,
        layer_kinds=tuple(layer for layer, _ in kept),
        layer_runs=tuple(LayerRun(kind=kind, count=count) for kind, (_, count) in enumerate(kept)),
        final_norm=False,
        max_sequence_length=denoiser.sample_tokens(*denoiser.usual_sample),
        denoiser=denoiser,
        activation_function="gelu",
        **more,
    )


def joint_denoiser(
    keys: Arguments,
    class_name: str,
    entry: tuple[PartSpec, ...],
    exit: tuple[PartSpec, ...],
    patch: tuple[int, int, int],
    text_tokens: int | None = None,
) -> DenoiserSpec:
    """Both ends, with the text in the sequence."""
    time, space = keys.family.compression
    return DenoiserSpec(
        class_name=class_name,
        config=keys.changed(),
        entry=entry,
        exit=exit,
        patch=patch,
        compression=(time, space),
        text_tokens=text_tokens or keys.family.text_tokens,
        text_in_sequence=True,
        usual_sample=keys.family.usual_sample,
    )


def made_output(hidden: int, patch_width: int, width: int | None = None, norm: int = 0) -> tuple[PartSpec, ...]:
    """Norm and projection, with a projection of the time step that gives shift and scale."""
    made = per_sample("output_conditioning", width or hidden, 2 * hidden)
    return (*made, *output(hidden, patch_width, norm=norm))


def flux(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """Flux: layers of two streams, then of one, where attention and MLP read one norm and give one sum."""
    heads, head_dim, patch = keys.size("num_attention_heads"), keys.size("attention_head_dim"), keys.size("patch_size")
    hidden, channels = heads * head_dim, keys.size("in_channels")
    single = single_stream(heads, head_dim, 4 * hidden)
    layers = [
        (double_stream(heads, head_dim, qk_norm="per_head"), keys.optional("num_layers", 0) or 0),
        (single, keys.optional("num_single_layers", 0) or 0),
    ]
    guidance = per_sample("guidance_embedding", TIME_FEATURES, hidden, hidden) if keys.on("guidance_embeds") else ()
    entry = (
        patches(channels, hidden),
        *per_sample("time_embedding", TIME_FEATURES, hidden, hidden),
        *guidance,
        *per_sample("pooled_text", keys.size("pooled_projection_dim"), hidden, hidden),
        *text(keys.size("joint_attention_dim"), hidden),
    )
    packed = patch * keys.family.packed
    exit = made_output(hidden, (keys.optional("out_channels") or channels) * patch**2)
    denoiser = joint_denoiser(keys, class_name, entry, exit, (1, packed, packed))
    return joint_model(layers, denoiser, hidden, name=name, position="rope")


def sd3(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """Stable Diffusion 3 (arXiv 2403.03206): two streams, of which the text's ends in the last layer."""
    heads, head_dim, patch = keys.size("num_attention_heads"), keys.size("attention_head_dim"), keys.size("patch_size")
    hidden, channels = heads * head_dim, keys.size("in_channels")
    if keys.size("caption_projection_dim") != hidden:
        keys.reader.refuse("caption_projection_dim", f"must be {hidden}, the width of the layers")
    qk_norm: Literal["none", "per_head"] = "none" if keys.value("qk_norm") is None else "per_head"
    layers = [
        (double_stream(heads, head_dim, qk_norm=qk_norm), keys.size("num_layers") - 1),
        (double_stream(heads, head_dim, qk_norm=qk_norm, text_ends=True), 1),
    ]
    entry = (
        patches(channels * patch**2, hidden),
        *per_sample("time_embedding", TIME_FEATURES, hidden, hidden),
        *per_sample("pooled_text", keys.size("pooled_projection_dim"), hidden, hidden),
        *text(keys.size("joint_attention_dim"), hidden),
    )
    exit = made_output(hidden, (keys.optional("out_channels") or channels) * patch**2)
    denoiser = joint_denoiser(keys, class_name, entry, exit, (1, patch, patch))
    return joint_model(layers, denoiser, hidden, name=name, position="none")


def qwen_image(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """Qwen-Image (arXiv 2508.02324): two streams throughout; ``patch_size`` is that of the output alone."""
    heads, head_dim, patch = keys.size("num_attention_heads"), keys.size("attention_head_dim"), keys.size("patch_size")
    hidden, channels, read = heads * head_dim, keys.size("in_channels"), keys.size("joint_attention_dim")
    text_norm = PartSpec(name="text_norm", kind="norm", in_features=read, of_source=True)
    entry = (
        patches(channels, hidden),
        *per_sample("time_embedding", TIME_FEATURES, hidden, hidden),
        text_norm,
        *text(read, hidden),
    )
    exit = made_output(hidden, (keys.optional("out_channels") or channels) * patch**2)
    denoiser = joint_denoiser(keys, class_name, entry, exit, (1, keys.family.packed, keys.family.packed))
    layers = [(double_stream(heads, head_dim, qk_norm="per_head"), keys.size("num_layers"))]
    return joint_model(layers, denoiser, hidden, name=name, position="rope")


def cogvideox(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """CogVideoX (arXiv 2408.06072): one set of weights for text and latents, with norms modulated for each."""
    heads, head_dim, patch = keys.size("num_attention_heads"), keys.size("attention_head_dim"), keys.size("patch_size")
    hidden, channels, time_width = heads * head_dim, keys.size("in_channels"), keys.size("time_embed_dim")
    frames, affine = keys.optional("patch_size_t"), keys.on("norm_elementwise_affine")
    norm: NormKind = "layer" if affine else "none_affine"
    volume, ofs = patch**2 * (frames or 1), keys.optional("ofs_embed_dim")
    layer = LayerSpec(
        attention=attention(
            heads,
            head_dim,
            qkv_bias=keys.on("attention_bias"),
            output_bias=True,
            qk_norm="per_head",
            qk_norm_bias=True,
        ),
        mlp=MlpSpec(intermediate_size=4 * hidden, gated=False, bias=True),
        norm=norm,
        num_norms=2,
        parts=(
            made_modulation("attention_conditioning", "attention", time_width, 6 * hidden),
            *modulation(hidden, "attention"),
            made_modulation("mlp_conditioning", "mlp", time_width, 6 * hidden),
            *modulation(hidden, "mlp"),
        ),
    )
    entry = (
        patches(channels * volume, hidden, bias=frames is not None or keys.on("patch_bias")),
        *per_sample("time_embedding", hidden, time_width, time_width),
        *(per_sample("ofs_embedding", ofs, ofs, ofs) if ofs else ()),
        *text(keys.size("text_embed_dim"), hidden),
    )
    scalars = 2 * hidden if affine else 0
    closing = PartSpec(name="final_norm", kind="norm", in_features=hidden, learned=scalars)
    exit = made_output(hidden, (keys.optional("out_channels") or channels) * volume, time_width, scalars)
    denoiser = joint_denoiser(
        keys, class_name, entry, (closing, *exit), (frames or 1, patch, patch), keys.size("max_text_seq_length")
    )
    position: Literal["rope", "none"] = "rope" if keys.on("use_rotary_positional_embeddings") else "none"
    return joint_model([(layer, keys.size("num_layers"))], denoiser, hidden, name=name, position=position)
