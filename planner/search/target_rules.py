"""Would the chosen back-end refuse this strategy?  Its own rule table decides."""

from __future__ import annotations

from importlib import import_module

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

    def messages(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> list[str]:
        """Every rule of the back-end that the strategy breaks, in its words."""
        if self.target == "any":
            return []
        # The emitters stand above the search and import it; the search asks them by name.
        rules = import_module(f"planner.emit.{self.target}.rules")
        given = import_module("planner.emit.rule_input").RuleInput(
            strategy=strategy,
            model=self.problem.model,
            workload=self.problem.workload,
            architecture=self.problem.cluster.pools[0].device.architecture,
            layers_per_chunk=chunk_layers,
        )
        return [f"{finding.rule}: {finding.message}" for finding in rules.violations(given)]
