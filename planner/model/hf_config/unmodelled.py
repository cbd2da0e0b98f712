"""Families that are known and not read, by the mechanism that a ``ModelSpec`` does not hold."""

from __future__ import annotations

_AUDIO = "an audio tower"

_BY_MECHANISM: dict[str, str] = {
    "an audio tower beside a vision tower that the timm library defines": "gemma3n",
    "attention to the keys and values of another model": "gemma4_assistant gemma4_unified_assistant",
    "blocks of bytes with towers of their own": "blt",
    "cross-attention to another modality": "evolla",
    "denoising over a canvas": "diffusion_gemma",
    "hashed attention": "reformer",
    _AUDIO: "musicgen musicgen_melody nemo_speechlm qwen2_5_omni qwen3_omni_moe",
    "a vision tower that the timm library defines": "fast_vlm perception_lm",
    "an action expert beside the language model, with attention over both": "pi0",
}

UNMODELLED: dict[str, str] = {name: words for words, names in _BY_MECHANISM.items() for name in names.split()}
"""``model_type`` -> what it has that cannot be described."""
