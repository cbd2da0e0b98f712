"""What are the frameworks that we know called?  For command lines, which need no traits to say it."""

from __future__ import annotations

FRAMEWORK_NAMES = (
    "tuned",
    "nemo",
    "megatron-2021",
    "megatron-deepspeed",
    "nanotron",
    "pytorch-fsdp",
    "torchtitan",
    "llm-foundry",
    "nemo-automodel",
    "hugging-face",
    "native",
)
"""The keys of ``planner.framework.known.FRAMEWORKS``, in their order."""
