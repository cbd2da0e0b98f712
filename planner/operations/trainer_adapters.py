"""Adapters that a trainer of Hugging Face's family is told to train: its arguments as the fields of ``Training``.

TRL ``ModelConfig``: ``--use_peft`` with ``--lora_r`` (16) and ``--lora_target_modules``; LLaMA-Factory:
``--finetuning_type lora`` with ``--lora_rank`` (8) and ``--lora_target`` (all).  Where TRL names no matrices, PEFT
takes those of the architecture (utils/constants.py: q_proj and v_proj for Llama, Mistral, Qwen2).  DeepSpeed-Chat
replaces every linear layer below ``--lora_module_name`` (dschat/utils/module/lora.py:89-104), and trains nothing else
with ``--only_optimize_lora``.  Of any other switch, such as ``--use_lora``, rank and matrices must be written; else
nothing is guessed and it is told by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.model.megatron_flags import MegatronFlags
from planner.question.training import EVERY_TARGET, AdapterTarget

_SWITCHES = ("use-peft", "use-peft-lora", "use-lora", "lora", "use-qlora", "q-lora")
_RANKS = ("lora-r", "lora-rank", "lora-dim")
_TARGETS = ("lora-target-modules", "lora-target", "target-modules")
_ENDS = ("lora-modules-to-save", "modules-to-save", "additional-target")
_FOUR, _EIGHT = ("load-in-4bit", "use-qlora", "q-lora"), ("load-in-8bit",)
_DETAILS = frozenset(
    {"lora-alpha", "lora-dropout", "lora-task-type", "use-rslora", "loraplus-lr-ratio", "bnb-4bit-quant-type"}
)
_MATRICES: dict[str, tuple[AdapterTarget, ...]] = {
    **{f"{name}_proj": (name,) for name in EVERY_TARGET},
    **dict.fromkeys(("qkv_proj", "query_key_value", "c_attn", "W_pack", "Wqkv", "qkv"), ("q", "k", "v")),
    **dict.fromkeys(("dense", "out_proj"), ("o",)),
    **dict.fromkeys(("gate_up_proj",), ("gate", "up")),
    **dict.fromkeys(("all", "all-linear"), EVERY_TARGET),
}
_WHOLE_LAYERS: tuple[list[str], ...] = (["decoder.layers."], ["layers."], ["model.layers."], [])
"""Of ``--lora_module_name``: all layers of a decoder; the first is the default."""
_USUAL_TRL: tuple[AdapterTarget, ...] = ("q", "v")


@dataclass(frozen=True, slots=True)
class TrainerAdapters:
    """``training``: fields of ``Training``; None where nothing is known.  ``used``, ``missed``: names of arguments."""

    training: dict[str, Any] | None = None
    used: frozenset[str] = frozenset()
    missed: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()


def adapters_of(trainer: MegatronFlags) -> TrainerAdapters:
    """What a trainer's arguments say of adapters."""
    names = {name for name in trainer.names if name in {*_SWITCHES, *_RANKS, *_TARGETS, *_ENDS, *_FOUR, *_EIGHT}}
    names |= trainer.names & {"finetuning-type", "use-dora", "quantization-bit"}
    factory = _first(trainer, ("finetuning-type",))
    names |= trainer.names & {"lora-module-name", "only-optimize-lora"}
    chat = _on(trainer, "only-optimize-lora")
    asked = factory == "lora" or chat or any(_on(trainer, name) for name in _SWITCHES)
    if not asked:
        # Off by a word, or details of what nothing turns on.
        off = {"finetuning-type"} | {name for name in _SWITCHES if name in trainer.names}
        return TrainerAdapters(used=frozenset(off & trainer.names), missed=frozenset(names - off))
    told = list[str]()
    rank = trainer.integer(*_RANKS) or (8 if factory == "lora" else 16 if _on(trainer, "use-peft") else None)
    targets = _targets(trainer)
    if targets is None and not any(name in trainer.names for name in _TARGETS):
        if factory == "lora" or (chat and trainer.values_of("lora-module-name")[:1] in _WHOLE_LAYERS):
            targets = EVERY_TARGET
        elif _on(trainer, "use-peft"):
            targets = _USUAL_TRL
            told.append("adapters beside q and v: PEFT's own matrices, as --lora_target_modules is not given")
    if rank is None or not targets:
        return TrainerAdapters(missed=frozenset(names))
    training: dict[str, Any] = {
        "kind": "lora",
        "rank": rank,
        "targets": [each for each in EVERY_TARGET if each in targets],
    }
    bits = trainer.integer("quantization-bit")
    if bits == 4 or any(_on(trainer, name) for name in _FOUR):
        training["kind"] = "qlora"
    elif bits == 8 or _on(trainer, "load-in-8bit"):
        training |= {"kind": "qlora", "base": "int8"}
    if _on(trainer, "use-dora"):
        training["dora"] = True
    if {"lm_head", "embed_tokens"} & set(_values(trainer, _ENDS)):
        training["ends"] = True
    return TrainerAdapters(training, frozenset(names) | (_DETAILS & trainer.names), told=tuple(told))


def _targets(trainer: MegatronFlags) -> tuple[AdapterTarget, ...] | None:
    """The matrices that are named; None where none is, or one of them has no name in plans."""
    found: set[AdapterTarget] = set()
    words = _values(trainer, _TARGETS)
    for word in words:
        if word not in _MATRICES:
            return None
        found |= set(_MATRICES[word])
    return tuple(found) if words else None


def _values(trainer: MegatronFlags, names: tuple[str, ...]) -> list[str]:
    held = [value for name in names for value in trainer.values_of(name)]
    return [part.strip("[]'\" ") for value in held for part in value.split(",") if part.strip("[]'\" ")]


def _first(trainer: MegatronFlags, names: tuple[str, ...]) -> str | None:
    return next((value for name in names for value in trainer.values_of(name)), None)


def _on(trainer: MegatronFlags, name: str) -> bool:
    return name in trainer.names and trainer.values_of(name)[:1] not in (["False"], ["false"], ["0"])
