"""The ``config.json`` of Qwen's language models behind a vision tower: qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_vl_moe.

Sizes that a ``VisionSpec`` holds only together (sides of patches, places of windows) are those of the published models;
where a model has others, what is read back differs and is refused (``model_config.why_not_buildable``).  Classes:
transformers 5.23 models/qwen2_vl, qwen2_5_vl, qwen3_vl (configuration and modeling files).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isqrt
from typing import Any

from planner.model.spec import ModelSpec, VisionSpec

TEXT_FAMILIES: Mapping[str, str] = {
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
}
"""Families with a tower, and the family that their language model is one of."""
_IMAGE, _VIDEO, _START, _END = 151655, 151656, 151652, 151653
_SPECIAL = {"image_token_id": _IMAGE, "video_token_id": _VIDEO, "vision_start_token_id": _START}


def vision_language_config(spec: ModelSpec, tower: VisionSpec, text: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a model; ``text``: that of its language model alone, a ``TEXT_FAMILIES`` one."""
    attention, later = spec.layer_kinds[0].attention, _TOWERS[spec.family] is _qwen3
    rope = {**text["rope_parameters"], "mrope_section": _sections(attention.head_dim, later=later)}
    language = {**text, "model_type": f"{spec.family}_text", "rope_parameters": rope}
    if later:
        language.pop("use_sliding_window", None)
    return {
        "model_type": spec.family,
        "tie_word_embeddings": language.pop("tie_word_embeddings"),
        "text_config": language,
        "vision_config": {"in_channels": 3, "spatial_merge_size": 2, "temporal_patch_size": 2}
        | _TOWERS[spec.family](spec, tower),
        **_tokens(spec.vocab_size),
    }


def _sections(head_dim: int, *, later: bool) -> list[int]:
    """Rotary pairs for time, height and width: 16, 24, 24 of 64, and 24, 20, 20 in Qwen3-VL."""
    half = head_dim // 2
    time = half * 3 // 8 if later else half // 4
    height = (half - time) // 2
    return [half - 2 * height, height, height]


def _tokens(vocab_size: int) -> dict[str, int]:
    """Marks of images; of a smaller vocabulary its last tokens."""
    if vocab_size > _VIDEO:
        return {**_SPECIAL, "vision_end_token_id": _END}
    names = (*_SPECIAL, "vision_end_token_id")
    return {name: vocab_size - 1 - index for index, name in enumerate(names)}


def _intermediate(tower: VisionSpec) -> int:
    return tower.layer.mlp.intermediate_size if tower.layer.mlp else 0


def _qwen2(spec: ModelSpec, tower: VisionSpec) -> dict[str, Any]:
    return {
        "model_type": "qwen2_vl",
        "depth": tower.num_layers,
        "embed_dim": tower.hidden_size,
        "hidden_size": spec.hidden_size,
        "mlp_ratio": _intermediate(tower) // tower.hidden_size,
        "num_heads": tower.layer.attention.num_heads,
        "patch_size": 14,
    }


def _later(spec: ModelSpec, tower: VisionSpec) -> dict[str, Any]:
    return {
        "depth": tower.num_layers,
        "hidden_size": tower.hidden_size,
        "intermediate_size": _intermediate(tower),
        "num_heads": tower.layer.attention.num_heads,
        "out_hidden_size": spec.hidden_size,
    }


def _qwen2_5(spec: ModelSpec, tower: VisionSpec) -> dict[str, Any]:
    whole = tower.num_layers - tower.num_windowed_layers
    return _later(spec, tower) | {
        "model_type": "qwen2_5_vl_vision",
        "patch_size": 14,
        "window_size": 14 * isqrt(tower.window_patches or 64),
        # Layers that see the whole image end groups of equal length, as 7, 15, 23 and 31 of 32 do.
        "fullatt_block_indexes": [(index + 1) * tower.num_layers // whole - 1 for index in range(whole)],
    }


def _qwen3(spec: ModelSpec, tower: VisionSpec) -> dict[str, Any]:
    """Three layers' outputs are merged beside the last one's; of a smaller tower as many as it has, at most."""
    last = tower.num_layers - 1
    deep = [8, 16, 24] if last > 24 else [min(last, index) for index in (0, 1, 2)]
    return _later(spec, tower) | {
        "model_type": f"{spec.family}_vision",
        "patch_size": 16,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": deep,
    }


_TOWERS: Mapping[str, Callable[[ModelSpec, VisionSpec], dict[str, Any]]] = {
    "qwen2_vl": _qwen2,
    "qwen2_5_vl": _qwen2_5,
    "qwen3_vl": _qwen3,
    "qwen3_vl_moe": _qwen3,
}
