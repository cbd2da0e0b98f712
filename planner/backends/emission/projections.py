"""Which fields did a projection change, from what to what, and why?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields

from planner.backends.emission.emission import Projection
from planner.diff import value_words
from planner.plan import Plan, StagePlan
from planner.strategy import Strategy

Repair = Callable[[Strategy, Plan], tuple[Strategy, str]]
"""What a strategy of the plan becomes, and why; the reason counts only where something changed."""


def projection(name: str, before: object, after: object, reason: str) -> Projection:
    """One changed field, its values in words."""
    return Projection(name, value_words(before), value_words(after), reason)


def strategy_projections(before: Strategy, after: Strategy, reason: str) -> list[Projection]:
    """Every field in which two strategies differ, in the strategy's own order, all for one reason."""
    return [
        projection(item.name, getattr(before, item.name), getattr(after, item.name), reason)
        for item in fields(Strategy)
        if getattr(before, item.name) != getattr(after, item.name)
    ]


def repaired(plan: Plan, repairs: Iterable[Repair]) -> tuple[Strategy, list[Projection]]:
    """The plan's strategy after all repairs, one after the other, and every difference."""
    strategy, notes = plan.chosen(), list[Projection]()
    for repair in repairs:
        changed, reason = repair(strategy, plan)
        notes += strategy_projections(strategy, changed, reason)
        strategy = changed
    return strategy, notes


def projected(
    plan: Plan, strategy: Strategy, stages: tuple[StagePlan, ...], notes: list[Projection]
) -> tuple[Plan, tuple[Projection, ...]]:
    """The plan with another strategy and other stages; the plan itself when there is nothing to note."""
    if not notes:
        return plan, ()
    return plan.model_copy(update={"strategy": strategy.to_dict(), "stages": stages}), tuple(notes)
