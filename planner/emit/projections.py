"""Which fields did a projection change, from what to what, and why?"""

from __future__ import annotations

from dataclasses import fields

from planner.diff import value_words
from planner.emit.emission import Projection
from planner.strategy import Strategy


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
