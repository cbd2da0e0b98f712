"""The shipped models that Megatron's ``pretrain_gpt.py`` cannot build, each with the rule of ours that says so."""

from __future__ import annotations

REFUSED_MODELS = {
    "bloom-176b": "M5",
    "gemma-2-27b": "M2",
    "gemma-3-27b": "M2",
    "gpt-neox-20b": "M4",
    "llava-1.5-7b": "M1",
    "mpt-30b": "M5",
    "olmo-2-13b": "M3",
    "opt-66b": "M11",
    "qwen2.5-vl-7b": "M1",
}
