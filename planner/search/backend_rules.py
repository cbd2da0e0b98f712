"""Whether the back-end would refuse a strategy: its own rule table decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

from planner.backends.asked import inside, the_software, why_not_these_devices
from planner.backends.backend import Software
from planner.backends.emission.emission import Finding
from planner.backends.rules.rule import RuleInput, SpaceRule, about_the_model, scale_up_devices
from planner.question.problem import Problem
from planner.strategy.strategy import Dispatcher, Strategy


class BackEndRules:
    """The rules of the one back-end that a problem names."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.software = the_software(problem)
        self._space = self.software.release.space
        pool = problem.cluster.pools[0]
        self._facts = (pool.device.architecture, scale_up_devices(problem.cluster), pool.device.memory_bytes)
        self._scale_up_kind, self._nic_transport = pool.scale_up.kind, pool.nic_transport or ""

    def refuses(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> bool:
        """Whether the back-end cannot run the strategy (with this split, once there is one)."""
        if self._refuses_all or self._unknown_dispatcher(strategy) or self._wide_weights(strategy):
            return True
        return self._space.rules.refuses(self.given(strategy, chunk_layers))

    @cached_property
    def _refuses_all(self) -> bool:
        return bool(self.always())

    def always(self) -> list[str]:
        """Every rule that the problem breaks whatever the strategy: its model, its devices, its workload."""
        given = self.given(Strategy(), None)
        found = (rule.check(given) for rule in self._space.rules.model_rules)
        return [
            f"{self.software.name}.{rule.id}: {message}"
            for rule, message in zip(self._space.rules.model_rules, found, strict=True)
            if message is not None
        ]

    def not_buildable(self, strategy: Strategy) -> list[str]:
        """The rules about the model that it breaks: what the back-end's files have no word for."""
        broken = self._space.rules.violations(self.given(strategy), only=about_the_model)
        return [f"{each.rule}: {each.message}" for each in broken]

    def broken(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> list[Finding]:
        """Every rule of the back-end that the strategy breaks, with the fields that it is about."""
        found = self._space.rules.violations(self.given(strategy, chunk_layers))
        if unknown := self._unknown_dispatcher(strategy):
            source = "columns of its space (dispatchers)"
            found.append(Finding(f"{self.software.name}.dispatcher", unknown, source, fields=("dispatcher",)))
        if self._wide_weights(strategy):
            wrong = "it stores weights in 16 bit (fp8_parameters)"
            source = "columns of its space (fp8_parameters)"
            found.append(Finding(f"{self.software.name}.fp8_parameters", wrong, source, fields=("fp8_parameters",)))
        return found

    def _unknown_dispatcher(self, strategy: Strategy) -> str:
        """What is wrong with the dispatcher where the back-end has no such; empty where it has."""
        known = self._space.columns.dispatchers
        if strategy.ep == 1 or strategy.dispatcher in known:
            return ""
        return f"routed tokens are sent by {' or '.join(known)}, not {strategy.dispatcher} (dispatcher)"

    def _wide_weights(self, strategy: Strategy) -> bool:
        """Whether 8-bit weights are asked of a back-end that has none."""
        return strategy.fp8_parameters and not self._space.columns.fp8_parameters

    def _outside_columns(self, strategy: Strategy) -> bool:
        """Whether a column of the space has no such value."""
        return bool(self._unknown_dispatcher(strategy)) or self._wide_weights(strategy)

    def dispatcher(self, ep: int, etp: int) -> Dispatcher:
        """How the back-end sends routed tokens where nobody says it: nothing to send without expert parallelism."""
        if ep == 1:
            return "alltoall"
        return self._space.dispatcher(self.given(Strategy(ep=ep, etp=etp)))

    def checks(self) -> list[Callable[[RuleInput], bool]]:
        """The parts of ``refuses``: a strategy without a split is refused where one of them is true."""
        rules = [partial(_breaks, rule) for rule in self._space.rules.strategy_rules]
        return [lambda given: self._refuses_all or self._outside_columns(given.strategy), *rules]

    def breaking(self, strategy: Strategy) -> list[SpaceRule]:
        """The rules themselves that a strategy breaks, beside those about the model alone."""
        given = self.given(strategy)
        return [rule for rule in self._space.rules.strategy_rules if rule.check(given) is not None]

    def messages(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> list[str]:
        """The same in its words."""
        return [f"{each.rule}: {each.message}" for each in self.broken(strategy, chunk_layers)]

    def spelled(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> Strategy:
        """The strategy as the back-end's files say it: one spelling for switches that mean nothing."""
        return self._space.spelled(strategy, self.given(strategy, chunk_layers))

    def given(self, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> RuleInput:
        """What a rule looks at."""
        architecture, scale_up, memory_bytes = self._facts
        return RuleInput(
            strategy=strategy,
            model=self.problem.model,
            workload=self.problem.workload,
            architecture=architecture,
            scale_up_devices=scale_up,
            device_memory_bytes=memory_bytes,
            scale_up_kind=self._scale_up_kind,
            nic_transport=self._nic_transport,
            layers_per_chunk=chunk_layers,
        )


def _breaks(rule: SpaceRule, given: RuleInput) -> bool:
    return rule.check(given) is not None


def why_none_there(wanted: Software, problem: Problem) -> list[str]:
    """Why a back-end can run nothing of a question, whatever the strategy: its devices, its rules; empty = it may."""
    devices = why_not_these_devices(wanted, problem)
    return [*([] if devices is None else [devices]), *BackEndRules(inside(problem, wanted)).always()]
