"""``--training``: which weights learn and by which loss, in one word or with options."""

from __future__ import annotations

from typing import Any

from planner.cli.key_values import key_values
from planner.errors import DocumentInvalid

FLAG = "--training"
SAID = "pretrain, full, lora or qlora, then options, for example qlora,rank=64,targets=q+v,task=dpo"
KINDS = ("pretrain", "full", "lora", "qlora")
LISTS = ("targets", "frozen_towers")
SWITCHES = ("dora", "ends", "double_quantization")


def training_of(text: str | None) -> dict[str, Any] | None:
    """The document of ``planner.question.training.Training`` that ``text`` means; None where nothing is said.

    ``KIND[,OPTION=VALUE]...``; targets and frozen towers are joined by ``+``; a switch alone is on.  Raises
    DocumentInvalid for what has not this form; values are checked with the workload.
    """
    if text is None:
        return None
    kind, *options = (word.strip() for word in text.split(","))
    if kind not in KINDS:
        raise DocumentInvalid(f"no training is called {kind!r}", where=FLAG, hint=f"give {SAID}")
    said = key_values(options, FLAG, f"give {SAID}", switches=SWITCHES, dashes=True)
    if "kind" in said:
        raise DocumentInvalid("kind is given twice", where=FLAG, hint=f"give {SAID}")
    return {"kind": kind} | {name: _value(name, value) for name, value in said.items()}


def _value(name: str, value: str) -> Any:
    if name in LISTS:
        return value.replace("+", ",")
    if name in SWITCHES and value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdecimal() and len(value) < 10 else value
