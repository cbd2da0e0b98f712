"""Which kinds of training a back-end runs: one rule for each space, with its own source."""

from __future__ import annotations

from collections.abc import Collection

from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.question.training import BaseStorage, TrainingTask

EVERY_TASK: tuple[TrainingTask, ...] = ("language_model", "dpo", "orpo", "reward")
EVERY_BASE: tuple[BaseStorage, ...] = ("bf16", "int8", "nf4", "gptq")
LANGUAGE_MODEL: tuple[TrainingTask, ...] = ("language_model",)
SIXTEEN_BIT: tuple[BaseStorage, ...] = ("bf16",)
SIXTEEN_OR_FOUR_BIT: tuple[BaseStorage, ...] = ("bf16", "nf4")
WHOLE: tuple[BaseStorage, ...] = ()
"""No adapters: every weight learns."""


def training_kinds(
    source: str,
    *,
    bases: Collection[BaseStorage] = WHOLE,
    tasks: Collection[TrainingTask] = LANGUAGE_MODEL,
    dora: bool = True,
    freezes_towers: bool = False,
    instead: str = "",
    name: str = "K1",
) -> SpaceRule:
    """The rule (id ``name``) of a back-end that trains adapters on bases stored so, and by these losses.

    ``freezes_towers``: whether it trains a model whose tower does not learn; ``instead``: what to do about it.
    """
    hint = f"; {instead}" if instead else ""

    def check(given: RuleInput) -> str | None:
        training = given.workload.trained
        if training.adapters and training.stored not in bases:
            what = "adapters" if not bases else f"adapters on a base in {training.stored}"
            return f"it trains no {what}{hint}"
        if training.dora and not dora:
            return "its adapters have no magnitudes (DoRA); drop dora"
        if training.frozen_towers and not freezes_towers:
            return "it freezes no towers; drop frozen_towers"
        if training.task not in tasks:
            return f"it has no {training.task} loss{hint}"
        return None

    return SpaceRule(name, source, check)
