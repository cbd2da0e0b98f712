"""The vision transformers that are read, by the ``model_type`` of their config; shapes of ``transformers`` 5.23."""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.vit_towers import (
    Vit,
    area,
    keyed,
    largest_image,
    listed_windows,
    no_rows,
)


def _full_blocks(keys: ClassKeys, layers: int) -> tuple[int, int | None]:
    full = {layer for layer in keys.reader.integers("fullatt_block_indexes", [7, 15, 23, 31]) if layer < layers}
    patches = keys.integer("window_size") // keys.integer("patch_size")
    return layers - len(full), max(patches, 1) ** 2


_CLIP = Vit(class_tokens=1, patch_bias=False, entry_norm=True)
_BLIP = Vit(class_tokens=1, channels=3, qkv_bias="qkv_bias")
_GLM = Vit(
    layers="depth",
    heads="num_heads",
    channels="in_channels",
    frames="temporal_patch_size",
    rows=no_rows,
    any_size=True,
    norm="rms",
    gated=True,
    qkv_bias="attention_bias",
    output_bias="attention_bias",
    mlp_bias="attention_bias",
    qk_norm="per_head",
    rope=True,
)
_MUSE = Vit(
    channels=3,
    frames="patch_temporal",
    patch_bias=False,
    rows=area("pos_emb_height", "pos_emb_width"),
    any_size=True,
    entry_norm=True,
    windows=listed_windows,
    rope=True,
)
VITS: dict[str, Vit] = {
    "blip_2_vision_model": _BLIP,
    "clip_vision_model": _CLIP,
    "cosmos3_edge_vision": Vit(rows=keyed("num_patches"), any_size=True),
    "blip_vision_model": Vit(class_tokens=1, channels=3),
    "dots3_note_vision_encoder": Vit(
        rows=no_rows,
        any_size=True,
        entry_norm=True,
        norm="rms",
        gated=True,
        qkv_bias="attention_bias",
        output_bias="attention_bias",
        mlp_bias="mlp_bias",
        qk_norm="per_head",
        rope=True,
    ),
    "ernie4_5_vl_moe_vision": Vit(
        layers="depth",
        heads="num_heads",
        channels="in_channels",
        patch_bias=False,
        rows=no_rows,
        any_size=True,
        rope=True,
    ),
    "exaone4_5_vision": Vit(
        layers="depth",
        heads="num_heads",
        kv_heads="num_key_value_heads",
        channels="in_channels",
        frames="temporal_patch_size",
        patch_bias=False,
        rows=no_rows,
        any_size=True,
        exit_norm=False,
        norm="rms",
        gated=True,
        windows=_full_blocks,
        rope=True,
    ),
    "gemma4_vision": Vit(
        kv_heads="num_key_value_heads",
        head_dim="head_dim",
        channels=3,
        patch_bias=False,
        rows=lambda keys, _: 2 * keys.integer("position_embedding_size"),
        any_size=True,
        exit_norm=False,
        norm="rms",
        num_norms=4,
        gated=True,
        qkv_bias="attention_bias",
        output_bias="attention_bias",
        mlp_bias=False,
        qk_norm="per_head",
        rope=True,
    ),
    "git_vision_model": _CLIP,
    "glm5_next_vision": _GLM,
    "glm_ocr_vision": _GLM,
    "granite_docling_vision": Vit(),
    "hunyuan_vl_vision": Vit(rows=largest_image("max_image_size", 1), any_size=True, exit_norm=False),
    "idefics2_vision": Vit(),
    "idefics3_vision": Vit(),
    "inkling2_vision": Vit(
        class_tokens=1,
        patch_bias=False,
        rows=area("posemb_grid_size"),
        any_size=True,
        entry_norm=True,
        exit_norm=False,
        layer_scales=2,
        rope=True,
    ),
    "instructblip_vision_model": _BLIP,
    "instructblipvideo_vision_model": _BLIP,
    "janus_vision_model": Vit(
        inner="mlp_ratio", qkv_bias="attention_bias", qk_norm="full_width", qk_norm_key="use_qk_norm", qk_norm_bias=True
    ),
    "kosmos_2_vision_model": _CLIP,
    "kosmos_2_5_vision_model": Vit(
        head_dim="head_dim",
        flat=("max_num_patches", "patch_embed_hidden_size"),
        rows=lambda keys, _: 2 * keys.integer("max_num_patches"),
        norm="rms",
        gated=True,
        qkv_bias=False,
        output_bias=False,
        mlp_bias=False,
    ),
    "minicpm_ocr_vision": Vit(any_size=True),
    "minicpmv4_6_vision": Vit(any_size=True),
    "minicpmv4_7_vision": Vit(any_size=True),
    "minimax_m3_vl_vision": Vit(
        frames="temporal_patch_size",
        patch_bias=False,
        rows=no_rows,
        any_size=True,
        entry_norm=True,
        exit_norm=False,
        rope=True,
    ),
    "molmo2_vision": Vit(
        kv_heads="num_key_value_heads",
        head_dim="head_dim",
        rows=keyed("num_position_embeddings"),
        exit_norm=False,
        qkv_bias="attention_bias",
        output_bias="attention_bias",
    ),
    "muse_glimmer_vision": _MUSE,
    "muse_spark_vision": _MUSE,
    "ovis2_vision": Vit(
        entry_norm=True, norm="rms", gated=True, qkv_bias="qkv_bias", output_bias="qkv_bias", mlp_bias="mlp_bias"
    ),
    "paddleocr_vl_vision": Vit(any_size=True, rope=True),
    "siglip2_vision_model": Vit(rows=keyed("num_patches"), any_size=True, pooling_head="vision_use_head"),
    "siglip_vision_model": Vit(pooling_head="vision_use_head"),
    "phi4_multimodal_vision": Vit(pooling_head=True),
    "step3p5_vision": Vit(
        inner="mlp_ratio", patch_bias=False, entry_norm=True, exit_norm=False, layer_scales=2, rope=True
    ),
    "unlimited_ocr_vision_encoder": Vit(class_tokens=1, has_patches=False, entry_norm=True, exit_norm=False),
    "video_llama_3_vision": Vit(rows=no_rows, any_size=True, rope=True),
}
"""``model_type`` of a vision config -> its structure."""
