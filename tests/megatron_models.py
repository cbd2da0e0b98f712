"""The shipped models that Megatron's ``pretrain_gpt.py`` cannot build, each with the rule of ours that says so."""

from __future__ import annotations

REFUSED_MODELS = {
    "bloom-176b": "M5",
    "gemma-2-27b": "M2",
    "gemma-3-27b": "M2",
    "gpt-neox-20b": "M4",
    "kimi-linear-48b-a3b": "M20",
    "llava-1.5-7b": "M1",
    "mpt-30b": "M5",
    "nemotron-3-super-120b-a12b": "M20",
    "olmo-2-13b": "M3",
    "opt-66b": "M11",
    "qwen2.5-vl-7b": "M1",
    "t5-11b": "M20",
    "wan-2.1-14b": "M20",
}

UNREAD_MODELS = {
    "deepseek-v3.2": "--experimental-attention-variant",
    "nemotron-3-nano-30b-a3b": "--hybrid-layer-pattern",
    "nemotron-h-8b": "--hybrid-layer-pattern",
    "qwen3-next-80b-a3b": "--experimental-attention-variant",
}
"""Those that are written, and whose arguments our reader of launch scripts refuses: it has no words for the flag."""
