"""Which optimizers a back-end has: one rule for each space, with its own source."""

from __future__ import annotations

from collections.abc import Collection

from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.question.optimizers import OPTIMIZERS, OptimizerName


def optimizers(source: str, *, has: Collection[OptimizerName], instead: str = "") -> SpaceRule:
    """The rule of a back-end that has these optimizers; ``instead``: what to do about the others."""
    hint = f"; {instead}" if instead else ""

    def check(given: RuleInput) -> str | None:
        name = given.workload.optimizer
        return None if name in has else f"it has no {OPTIMIZERS[name].title} ({name}){hint}"

    return SpaceRule("K5", source, check)
