"""Families that are known and not read, by the mechanism that a ``ModelSpec`` does not hold."""

from __future__ import annotations

from planner.model.hf_config.mechanisms import DSA, HYPER

_ENCODER_DECODER = "an encoder beside the decoder, with cross-attention"
_AUDIO = "an audio tower"

_BY_MECHANISM: dict[str, str] = {
    DSA: "dots3_note mistral_large4",
    f"{HYPER} and {DSA}": "glm5_next qwen4_exp",
    "block-sparse attention": "minimax_m3_vl",
    "an audio tower beside a vision tower that the timm library defines": "gemma3n",
    "a vision tower and an audio tower around a model with inputs of every layer": "gemma4 gemma4_unified",
    "attention to the keys and values of another model": "gemma4_assistant gemma4_unified_assistant",
    "attention residuals and short convolutions": "inkling2",
    "short convolutions beside attention and experts": "inkling_mm_model",
    "experts on a latent width, and gates on the residuals": "muse_spark",
    "a gate on the output of attention": "muse_glimmer step3p7",
    "blocks of bytes with towers of their own": "blt",
    "cross-attention to another modality": "evolla",
    "denoising over a canvas": "diffusion_gemma",
    "hashed attention": "reformer",
    _ENCODER_DECODER: "florence2 pp_formulanet",
    _AUDIO: "fun_asr_nano kyutai_speech_to_text musicgen musicgen_melody nemo_speechlm phi4_multimodal"
    " qwen2_5_omni qwen3_omni_moe vibevoice_asr voxtral_realtime",
    "a gate on each head of attention, beside short convolutions": "lfm3_vl",
    "norms inside attention and MLP": "kosmos-2 kosmos-2.5",
    "a vision tower that the timm library defines": "fast_vlm perception_lm",
    "an action expert beside the language model, with attention over both": "pi0",
    "experts for text and experts for images in one layer": "ernie4_5_vl_moe",
    "cross-attention to the vision tower in every layer": "blip",
}

UNMODELLED: dict[str, str] = {name: words for words, names in _BY_MECHANISM.items() for name in names.split()}
"""``model_type`` -> what it has that cannot be described."""
