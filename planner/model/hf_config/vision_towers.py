"""The vision tower in front of a language model.

Shapes: ``transformers`` modeling files of clip, siglip, qwen2_vl and qwen2_5_vl (5.x).  ``VisionSpec.extra_parameters``
holds what is not a layer: patch embedding, positions, norms, pooling head and the projector into the language model.
"""

from __future__ import annotations

from planner.model.hf_config.layers import divided_heads, read_num_layers, read_width
from planner.model.hf_config.reader import ConfigReader
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, NormKind, VisionSpec

REFERENCE_IMAGE_SIDE = 896
"""Pixels a side of the square image that stands for "one image" where a model takes any resolution (qwen2_vl)."""


def vision_layer(width: int, heads: int, intermediate_size: int, *, gated: bool, norm: NormKind) -> LayerSpec:
    """A bidirectional ViT layer with biases."""
    attention = AttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=max(width // heads, 1),
        v_head_dim=max(width // heads, 1),
        qkv_bias=True,
        output_bias=True,
        causal=False,
    )
    mlp = MlpSpec(intermediate_size=intermediate_size, gated=gated, bias=True)
    return LayerSpec(attention=attention, mlp=mlp, norm=norm)


def read_contrastive_tower(
    reader: ConfigReader, *, kind: str, projector_parameters: int, projector_flops: int, tokens_per_image: int | None
) -> VisionSpec:
    """CLIP or SigLIP tower; ``tokens_per_image`` None = one language-model token a patch."""
    clip = kind == "clip_vision_model"
    width = read_width(reader, "hidden_size", default=768)
    heads = reader.integer("num_attention_heads", default=12)
    divided_heads(reader, "num_attention_heads", width, heads)
    inner = read_width(reader, "intermediate_size", default=3072)
    channels = reader.integer("num_channels", default=3)
    patch = reader.integer("patch_size", default=32 if clip else 16)
    side = reader.integer("image_size", default=224) // patch
    if side == 0:
        reader.refuse("patch_size", f"must not exceed the image size, is {patch}")
    patches = max(side, 1) ** 2
    embedding = channels * patch * patch * width
    if clip:  # class token, positions of patches and class token, a norm before and after the layers
        extra = embedding + width + (patches + 1) * width + 4 * width
    else:  # biased patch embedding, positions, a norm after the layers
        extra = embedding + width + patches * width + 2 * width
        if reader.boolean("vision_use_head", default=True):
            # probe, attention with biases, norm, MLP
            extra += width + 4 * width * (width + 1) + 2 * width + 2 * width * inner + inner + width
    return VisionSpec(
        hidden_size=width,
        num_layers=read_num_layers(reader, "num_hidden_layers", default=12),
        layer=vision_layer(width, heads, inner, gated=False, norm="layer"),
        patches_per_image=patches + (1 if clip else 0),
        tokens_per_image=tokens_per_image or patches,
        extra_parameters=extra + projector_parameters,
        projector_flops_per_image=2 * patches * embedding + projector_flops,
    )


def read_qwen_tower(reader: ConfigReader, *, second_generation: bool, text_width: int) -> VisionSpec:
    """Qwen2-VL tower, or (``second_generation``) Qwen2.5-VL's with RMS norm, gated MLP and windowed attention.

    The tower takes any resolution; one image is a square of ``REFERENCE_IMAGE_SIDE`` pixels.
    """
    if second_generation:
        width = read_width(reader, "hidden_size", default=3584)
        inner = read_width(reader, "intermediate_size", default=3420)
        out = read_width(reader, "out_hidden_size", default=3584)
    else:
        width = read_width(reader, "embed_dim", default=1280)
        inner = width * reader.integer("mlp_ratio", default=4)
        out = read_width(reader, "hidden_size", default=3584)
    if out != text_width:
        key = "out_hidden_size" if second_generation else "hidden_size"
        reader.refuse(key, f"must equal the language model's hidden size {text_width}, is {out}")
    heads = reader.integer("num_heads", "num_attention_heads", default=16)
    divided_heads(reader, "num_heads", width, heads)
    depth = read_num_layers(reader, "depth", "num_hidden_layers", default=32)
    patch = reader.integer("patch_size", default=14)
    merge = reader.integer("spatial_merge_size", default=2)
    frames = reader.integer("temporal_patch_size", default=2)
    channels = reader.integer("in_channels", "in_chans", default=3)
    patches = max(REFERENCE_IMAGE_SIDE // patch // merge, 1) ** 2 * merge**2
    embedding = channels * frames * patch * patch * width
    merged = width * merge**2
    merger = (1 if second_generation else 2) * width + merged * (merged + 1) + merged * out + out
    windowed, window = _windows(reader, depth, patch) if second_generation else (0, None)
    tokens = patches // merge**2
    return VisionSpec(
        hidden_size=width,
        num_layers=depth,
        layer=vision_layer(width, heads, inner, gated=second_generation, norm="rms" if second_generation else "layer"),
        rope=True,
        patches_per_image=patches,
        tokens_per_image=tokens,
        extra_parameters=embedding + merger,
        projector_flops_per_image=2 * patches * embedding + 2 * tokens * merged * (merged + out),
        num_windowed_layers=windowed,
        window_patches=window,
    )


def _windows(reader: ConfigReader, depth: int, patch: int) -> tuple[int, int | None]:
    full = {layer for layer in reader.integers("fullatt_block_indexes", [7, 15, 23, 31]) if layer < depth}
    side = reader.integer("window_size", default=112) // patch
    return depth - len(full), max(side, 1) ** 2
