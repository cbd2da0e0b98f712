"""Which other target can say what this one gives up?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.backends.emission.emission import Projection, TargetName
from planner.backends.registry import TARGETS, target_module
from planner.plan import Plan


def given_up_by_target(plan: Plan, targets: Iterable[TargetName]) -> dict[TargetName, frozenset[str]]:
    """For each target that can run the plan or a projection of it: the fields that it gives up."""
    found = {}
    for name in targets:
        module = target_module(name)
        projected, projections = module.project(plan)
        if not any(rule.check(projected) for rule in module.rules()):
            found[name] = frozenset(each.field for each in projections)
    return found


def with_keepers(projections: Iterable[Projection], plan: Plan, target: TargetName) -> tuple[Projection, ...]:
    """The same projections, each with the other targets that keep the wanted value."""
    others = given_up_by_target(plan, (name for name in TARGETS if name != target))
    return tuple(replace(each, kept_by=_keepers(each.field, others)) for each in projections)


def runs_whole(plan: Plan, but: TargetName) -> tuple[TargetName, ...]:
    """The other targets that run the plan as it is."""
    others = given_up_by_target(plan, (name for name in TARGETS if name != but))
    return tuple(name for name, fields in others.items() if not fields)


def _keepers(field: str, others: Mapping[TargetName, frozenset[str]]) -> tuple[TargetName, ...]:
    return tuple(name for name, fields in others.items() if field not in fields)
