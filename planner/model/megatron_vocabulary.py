"""The vocabulary that a launch script of Megatron-LM trains with, padded.

Padding: up to a multiple of ``--make-vocab-size-divisible-by`` (128) times tp (core 0.19.2 training/arguments.py and
training/tokenizer).  ``NullTokenizer`` adds one end token to ``--vocab-size``.  Sizes of tokenizers are those of the
published tokenizer files; where the table has none, the size is asked for.
"""

from __future__ import annotations

import re

from planner.model.megatron_flags import MegatronFlags

_TYPES = {"GPT2BPETokenizer": 50257, "Llama2Tokenizer": 32000}
"""GPT-2: openai/gpt-2 encoder.json; Llama 2: meta-llama/llama models/llama2 tokenizer.model."""
_NAMES: tuple[tuple[str, int], ...] = (
    (r"gpt-?2(?!\d)", 50257),  # openai/gpt-2, encoder.json
    (r"llama-?2(?!\d)", 32000),  # meta-llama/Llama-2-7b-hf, config.json
    (r"(meta-)?llama-?3(?!\d)", 128256),  # meta-llama/Meta-Llama-3-8B, config.json
    (r"mixtral-8x(7b|22b)-v0\.1|mistral-7b-v0\.[12]", 32000),  # mistralai/Mixtral-8x7B-v0.1, config.json
)
_PATCHES = {"LLama3Tokenizer": 128000}
"""Pai-Megatron-Patch, megatron_patch/tokenizer/__init__.py: the padded size is this and --extra-vocab-size."""


def read_vocabulary(flags: MegatronFlags, tp: int) -> int:
    """Padded vocabulary; what cannot be told is a finding that names the flag."""
    multiple = (flags.integer("make-vocab-size-divisible-by") or 128) * tp
    given = flags.integer("padded-vocab-size", "pad-vocab-size-to")
    if given is not None:
        return given
    size = flags.integer("vocab-size")
    tokenizer, patch = flags.text("tokenizer-type"), flags.text("patch-tokenizer-type")
    if size is None and patch in _PATCHES:
        return _PATCHES[patch] + (flags.integer("extra-vocab-size", minimum=0) or 0)
    if size is None:
        size = _TYPES.get(tokenizer or "") or _named(flags)
    if size is None:
        if not flags.has("vocab-size"):
            flags.refuse("vocab-size", "is missing: the tokenizer's file decides it", "say it: --vocab-size N")
        return multiple
    if tokenizer == "NullTokenizer":
        size += 1
    return -(-size // multiple) * multiple


def _named(flags: MegatronFlags) -> int | None:
    """Size of the published tokenizer that a path or name ends in."""
    for flag in ("tokenizer-model", "tokenizer-name-or-path", "vocab-file"):
        path = next(iter(flags.words(flag)), "").rstrip("/").lower()
        for part in path.split("/")[-2:]:
            for pattern, size in _NAMES:
                if re.match(pattern, part):
                    return size
    return None
