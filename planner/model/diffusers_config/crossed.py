"""Classes whose layers attend to text states: Wan, LTX-Video, PixArt.

Self-attention over latent tokens, cross-attention to text, a plain MLP; shift, scale and gate are the sum of one table
a layer and one projection of the time step for all layers (PixArt-alpha, arXiv 2310.00426, section 2.3).
Sources: diffusers 0.42.1 ``models/transformers/``: transformer_wan.py:421-510, 600-685; transformer_ltx.py:292-380,
450-495; pixart_transformer_2d.py:84-190 with ``models/attention.py`` (BasicTransformerBlock).
"""

from __future__ import annotations

from typing import Any, Literal

from planner.model.denoiser import DenoiserSpec
from planner.model.diffusers_config.arguments import Arguments, Family
from planner.model.diffusers_config.parts import TIME_FEATURES, modulation, output, patches, per_sample, text
from planner.model.layer_parts import PartSpec
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.mixers.kinds import NormKind
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec

WAN = Family(
    {
        "patch_size": (1, 2, 2),
        "num_attention_heads": 40,
        "attention_head_dim": 128,
        "in_channels": 16,
        "out_channels": 16,
        "text_dim": 4096,
        "freq_dim": 256,
        "ffn_dim": 13824,
        "num_layers": 40,
        "cross_attn_norm": True,
        "qk_norm": "rms_norm_across_heads",
        "eps": 1e-6,
        "image_dim": None,
        "added_kv_proj_dim": None,
        "rope_max_seq_len": 1024,
        "pos_embed_seq_len": None,
    },
    text_tokens=512,
    usual_sample=(81, 720, 1280),
    compression=(4, 8),
    ignored=frozenset({"qk_norm", "rope_max_seq_len"}),
    fixed={"pos_embed_seq_len": (None,)},
)
"""Pictures are read as channels of the latents (Wan 2.2), or also as tokens beside the text (Wan 2.1 I2V).

A first and a last picture (``pos_embed_seq_len``, Wan 2.1 FLF2V) are refused.
"""
PICTURE_TOKENS = 257
"""What the image encoder gives of one picture (transformer_wan.py:549-553); the text has 512 beside it (:84)."""
_WIDE_LATENTS, _WIDE_COMPRESSION = 48, (4, 16)
"""Wan 2.2 TI2V-5B: 48 latent channels are those of the VAE that compresses 16 pixels (Wan2.2 README, Wan2.2-VAE)."""

LTX = Family(
    {
        "in_channels": 128,
        "out_channels": 128,
        "patch_size": 1,
        "patch_size_t": 1,
        "num_attention_heads": 32,
        "attention_head_dim": 64,
        "cross_attention_dim": 2048,
        "num_layers": 28,
        "activation_fn": "gelu-approximate",
        "qk_norm": "rms_norm_across_heads",
        "norm_elementwise_affine": False,
        "norm_eps": 1e-6,
        "caption_channels": 4096,
        "attention_bias": True,
        "attention_out_bias": True,
    },
    text_tokens=128,
    usual_sample=(121, 512, 768),
    compression=(8, 32),
    fixed={"activation_fn": ("gelu", "gelu-approximate"), "qk_norm": ("rms_norm_across_heads",)},
)

PIXART = Family(
    {
        "num_attention_heads": 16,
        "attention_head_dim": 72,
        "in_channels": 4,
        "out_channels": 8,
        "num_layers": 28,
        "dropout": 0.0,
        "norm_num_groups": 32,
        "cross_attention_dim": 1152,
        "attention_bias": True,
        "sample_size": 128,
        "patch_size": 2,
        "activation_fn": "gelu-approximate",
        "num_embeds_ada_norm": 1000,
        "upcast_attention": False,
        "norm_type": "ada_norm_single",
        "norm_elementwise_affine": False,
        "norm_eps": 1e-6,
        "interpolation_scale": None,
        "use_additional_conditions": None,
        "caption_channels": None,
        "attention_type": "default",
    },
    text_tokens=300,
    usual_sample=(1, 1024, 1024),
    compression=(1, 8),
    ignored=frozenset({"norm_num_groups", "num_embeds_ada_norm", "interpolation_scale"}),
    fixed={
        "dropout": (0.0, 0),
        "activation_fn": ("gelu", "gelu-approximate"),
        "upcast_attention": (False,),
        "norm_type": ("ada_norm_single",),
        "norm_elementwise_affine": (False,),
        "attention_type": ("default",),
    },
)
_ADDITIONAL_CONDITIONS_SIZE = 128
"""``sample_size`` at which the class adds resolution and aspect ratio where nothing is said."""


def crossed_layer(
    hidden: int,
    heads: int,
    mlp_width: int,
    source_width: int,
    *,
    norm: NormKind,
    cross_norm: NormKind | Literal["absent"],
    qk_norm: Literal["none", "per_head", "full_width"],
    bias: tuple[bool, bool] = (True, True),
    pictures: bool = False,
) -> LayerSpec:
    """``bias``: of queries, keys and values; of the output.  ``pictures``: they have keys and values of their own."""
    head_dim = hidden // heads
    attention = AttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=bias[0],
        output_bias=bias[1],
        qk_norm=qk_norm,
        causal=False,
    )
    cross = CrossAttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        source_width=source_width,
        query_bias=bias[0],
        key_bias=bias[0],
        value_bias=bias[0],
        output_bias=bias[1],
        qk_norm=qk_norm,
        norm=cross_norm,
        keys_held_twice=pictures,
    )
    return LayerSpec(
        attention=attention,
        cross=cross,
        mlp=MlpSpec(intermediate_size=mlp_width, gated=False, bias=True),
        norm=norm,
        num_norms=2 if cross_norm == "absent" else 3,
        parts=(*modulation(hidden, "attention", learned=6 * hidden), *modulation(hidden, "mlp")),
    )


def crossed_model(keys: Arguments, hidden: int, layer: LayerSpec, denoiser: DenoiserSpec, **more: Any) -> ModelSpec:
    """``num_layers`` such layers between the ends of ``denoiser``."""
    return ModelSpec(
        family=denoiser.class_name,
        hidden_size=hidden,
        vocab_size=0,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=keys.size("num_layers")),),
        final_norm=False,
        max_sequence_length=denoiser.sample_tokens(*denoiser.usual_sample),
        denoiser=denoiser,
        activation_function="gelu",
        **more,
    )


def wan(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """Wan 2.1 and 2.2 (arXiv 2503.20314): one time step a sample."""
    heads, patch = keys.size("num_attention_heads"), keys.three("patch_size")
    hidden, channels = heads * keys.size("attention_head_dim"), keys.size("in_channels")
    given, volume = keys.optional("out_channels") or channels, patch[0] * patch[1] * patch[2]
    picture, added = keys.optional("image_dim"), keys.optional("added_kv_proj_dim")
    if added != (hidden if picture else None):
        wanted = f"{hidden}, the width of projected pictures" if picture else "null where image_dim is null"
        keys.reader.refuse("added_kv_proj_dim", f"must be {wanted}")
    layer = crossed_layer(
        hidden,
        heads,
        keys.size("ffn_dim"),
        hidden,
        norm="none_affine",
        cross_norm="layer" if keys.on("cross_attn_norm") else "absent",
        qk_norm="full_width",
        pictures=picture is not None,
    )
    tokens = keys.family.text_tokens + (PICTURE_TOKENS if picture else 0)
    denoiser = DenoiserSpec(
        class_name=class_name,
        config=keys.changed(),
        entry=(
            patches(channels * volume, hidden),
            *per_sample("time_embedding", keys.size("freq_dim"), hidden, hidden, 6 * hidden),
            *text(keys.size("text_dim"), hidden, hidden, share=keys.family.text_tokens / tokens),
            *(_picture(picture, hidden, PICTURE_TOKENS / tokens) if picture else ()),
        ),
        exit=output(hidden, given * volume, learned=2 * hidden),
        patch=patch,
        compression=_WIDE_COMPRESSION if channels == _WIDE_LATENTS else keys.family.compression,
        text_tokens=tokens,
        text_in_sequence=False,
        usual_sample=_divided(keys.family.usual_sample, 32 if channels == _WIDE_LATENTS else 1),
    )
    return crossed_model(keys, hidden, layer, denoiser, name=name, position="rope", norm_epsilon=keys.number("eps"))


def _picture(width: int, hidden: int, share: float) -> tuple[PartSpec, ...]:
    """Tokens of a picture: a norm, an MLP as wide as its input, a norm (transformer_wan.py, WanImageEmbedding)."""
    norms = {"kind": "norm", "bias": True, "of_source": True, "rows": share}
    return (
        PartSpec.model_validate({"name": "picture_norm", "in_features": width, **norms}),
        *text(width, width, hidden, name="picture", share=share),
        PartSpec.model_validate({"name": "picture_output_norm", "in_features": hidden, **norms}),
    )


def _divided(sample: tuple[int, int, int], step: int) -> tuple[int, int, int]:
    """The sample with height and width in whole steps."""
    return sample[0], sample[1] // step * step, sample[2] // step * step


def ltx(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """LTX-Video (arXiv 2501.00103)."""
    heads = keys.size("num_attention_heads")
    hidden, channels = heads * keys.size("attention_head_dim"), keys.size("in_channels")
    if keys.size("cross_attention_dim") != hidden:
        keys.reader.refuse("cross_attention_dim", f"must be {hidden}, the width of the projected text")
    layer = crossed_layer(
        hidden,
        heads,
        4 * hidden,
        hidden,
        norm="rms" if keys.on("norm_elementwise_affine") else "none_affine",
        cross_norm="absent",
        qk_norm="full_width",
        bias=(keys.on("attention_bias"), keys.on("attention_out_bias")),
    )
    space, time = keys.size("patch_size"), keys.size("patch_size_t")
    denoiser = DenoiserSpec(
        class_name=class_name,
        config=keys.changed(),
        entry=(
            patches(channels, hidden),
            *per_sample("time_embedding", TIME_FEATURES, hidden, hidden, 6 * hidden),
            *text(keys.size("caption_channels"), hidden, hidden),
        ),
        exit=output(hidden, keys.optional("out_channels") or channels, learned=2 * hidden),
        patch=(time, space, space),
        compression=keys.family.compression,
        text_tokens=keys.family.text_tokens,
        text_in_sequence=False,
        usual_sample=keys.family.usual_sample,
    )
    return crossed_model(
        keys, hidden, layer, denoiser, name=name, position="rope", norm_epsilon=keys.number("norm_eps")
    )


def pixart(keys: Arguments, name: str, class_name: str) -> ModelSpec:
    """PixArt-alpha and -sigma; resolution and aspect ratio are further conditions of the first at 1024 pixels."""
    heads = keys.size("num_attention_heads")
    hidden, channels, patch = heads * keys.size("attention_head_dim"), keys.size("in_channels"), keys.size("patch_size")
    caption, source = keys.optional("caption_channels"), keys.size("cross_attention_dim")
    if caption is not None and source != hidden:
        keys.reader.refuse("cross_attention_dim", f"must be {hidden}, the width of the projected text")
    bias = keys.on("attention_bias")
    layer = crossed_layer(
        hidden,
        heads,
        4 * hidden,
        source,
        norm="none_affine",
        cross_norm="absent",
        qk_norm="none",
        bias=(bias, True),
    )
    conditions = keys.value("use_additional_conditions")
    more = keys.size("sample_size") == _ADDITIONAL_CONDITIONS_SIZE if conditions is None else bool(conditions)
    third = hidden // 3
    sizes = (*per_sample("size_embedding", TIME_FEATURES, third, third),) if more else ()
    shapes = (*per_sample("aspect_embedding", TIME_FEATURES, third, third),) if more else ()
    denoiser = DenoiserSpec(
        class_name=class_name,
        config=keys.changed(),
        entry=(
            patches(channels * patch**2, hidden),
            *per_sample("time_embedding", TIME_FEATURES, hidden, hidden, 6 * hidden),
            *sizes,
            *shapes,
            *(text(caption, hidden, hidden) if caption is not None else ()),
        ),
        exit=output(hidden, (keys.optional("out_channels") or channels) * patch**2, learned=2 * hidden),
        patch=(1, patch, patch),
        compression=keys.family.compression,
        text_tokens=keys.family.text_tokens,
        text_in_sequence=False,
        usual_sample=keys.family.usual_sample,
    )
    return crossed_model(
        keys, hidden, layer, denoiser, name=name, position="none", norm_epsilon=keys.number("norm_eps")
    )
