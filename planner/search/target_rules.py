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
        rules = import_module(f"planner.emit.{self.target}.rules")
        make = import_module(f"planner.emit.{self.target}.rule_input").RuleInput
        model, workload = self.problem.model, self.problem.workload
        if self.target == "megatron":
            architecture = self.problem.cluster.pools[0].device.architecture
            given = make(strategy, model, workload, architecture, chunk_layers)
        else:
            # Their rules about single stages hold for every split that the search makes.
            given = make(strategy, model, workload)
        return [f"{finding.rule}: {finding.message}" for finding in rules.violations(given)]
