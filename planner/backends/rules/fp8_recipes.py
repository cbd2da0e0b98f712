"""Which fp8 recipes a back-end has, on which devices: one rule for each space, with its own source."""

from __future__ import annotations

from collections.abc import Sequence

from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.question.fp8_recipes import FP8_RECIPES, Fp8RecipeName

EVERY_RECIPE: tuple[Fp8RecipeName, ...] = tuple(each.name for each in FP8_RECIPES.values())
EIGHT_BIT: tuple[Fp8RecipeName, ...] = tuple(each.name for each in FP8_RECIPES.values() if each.format == "fp8")


def fp8_recipes(source: str, *, has: Sequence[Fp8RecipeName], own: str = "") -> SpaceRule:
    """The rule of a back-end that has these recipes; ``own``: the one that it takes where none is said."""
    hint = f"; leave fp8_recipe out: it takes {own}" if own else ""

    def check(given: RuleInput) -> str | None:
        name = given.workload.fp8_recipe
        if name is None:
            return None
        if name not in has:
            return f"it has no fp8 recipe {name}{hint}"
        known, found = FP8_RECIPES[name], given.architecture.lower()
        if found and not found.startswith(known.architectures):
            return f"the fp8 recipe {name} needs {', '.join(known.architectures)}, not {given.architecture}"
        return None

    return SpaceRule("K6", source, check)
