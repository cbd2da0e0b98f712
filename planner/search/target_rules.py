"""Would the chosen back-end refuse this strategy?  Its own rule table decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from importlib import import_module
from typing import Any

from planner.backends.rules.strategy_findings import named_fields
from planner.problem import Problem
from planner.strategy import Strategy


class TargetRules:
    """The rules of the problem's target; target ``any`` refuses nothing."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.target = problem.constraints.target

    def refuses(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> bool:
        """Whether the back-end cannot run the strategy (with this split, once there is one)."""
        return bool(self.messages(strategy, chunk_layers))

    def always(self) -> list[str]:
        """Every rule that the problem breaks whatever the strategy: its model, its devices, its workload."""
        if self.target == "any":
            return []
        found, mended = (self._findings(Strategy(), None, model_too=too) for too in (True, False))
        return [message for message in found if message not in mended]

    def messages(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> list[str]:
        """Every rule of the back-end that the strategy breaks, in its words."""
        return [] if self.target == "any" else self._findings(strategy, chunk_layers, model_too=True)

    def about(self, strategy: Strategy, message: str) -> tuple[str, ...]:
        """Fields of the strategy that a broken rule is about: those that it names, else those whose default mends it.

        Where no field alone does, an irreducible set of them: each is kept only if the others do not mend it.
        """
        named = named_fields(message)
        if named or message not in self.messages(strategy):
            return named
        default = Strategy()
        changed = [
            each.name for each in fields(Strategy) if getattr(strategy, each.name) != getattr(default, each.name)
        ]
        alone = tuple(name for name in changed if self._mends(strategy, message, (name,)))
        if alone or not self._mends(strategy, message, changed):
            return alone
        needed = changed
        for name in changed:
            others = [each for each in needed if each != name]
            if self._mends(strategy, message, others):
                needed = others
        return tuple(needed)

    def _mends(self, strategy: Strategy, message: str, names: Sequence[str]) -> bool:
        """Whether a rule is broken less often, and not in these words, with some fields at their defaults."""
        default, rule = Strategy(), message.partition(":")[0]
        changes: dict[str, Any] = {name: getattr(default, name) for name in names}
        before, after = (
            [each for each in self.messages(asked) if each.partition(":")[0] == rule]
            for asked in (strategy, replace(strategy, **changes))
        )
        return message not in after and len(after) < len(before)

    def _findings(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None, *, model_too: bool) -> list[str]:
        # The emitters stand above the search and import it; the search asks them by name.
        rules = import_module(import_module("planner.backends.registry").TARGETS[self.target])
        seen = import_module("planner.backends.rules.rule")
        given = seen.RuleInput(
            strategy=strategy,
            model=self.problem.model,
            workload=self.problem.workload,
            architecture=self.problem.cluster.pools[0].device.architecture,
            scale_up_devices=seen.scale_up_devices(self.problem.cluster),
            layers_per_chunk=chunk_layers,
        )
        return [f"{finding.rule}: {finding.message}" for finding in rules.violations(given, model_too=model_too)]
