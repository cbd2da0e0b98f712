"""The rules of a back-end, asked one by one about whole plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.backends.rules.rule import RuleTable, SpaceRule, rule_input
from planner.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class PlanRule:
    """``check`` returns a message when the plan breaks the rule, else None."""

    id: str
    source: str
    check: Callable[[Plan], str | None]


def over_plans(table: RuleTable) -> tuple[PlanRule, ...]:
    """Every rule of the table, by the name that findings have."""

    def of(rule: SpaceRule) -> PlanRule:
        return PlanRule(f"{table.backend}.{rule.id}", rule.source, lambda plan: rule.check(rule_input(plan)))

    return tuple(of(rule) for rule in (*table.model_rules, *table.strategy_rules))
