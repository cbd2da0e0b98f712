"""Ids of rules and words of strategies are declared once: what was two meanings of one id, or a field without words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields

from planner.backends.registry import OURS
from planner.backends.rules.rule import SpaceRule
from planner.strategy.fields import FIELD
from planner.strategy.rows import COLUMN_OF_FIELD, COLUMNS
from planner.strategy.strategy import Strategy
from tests.command_line import REPOSITORY

SHARED = "K"
"""Ids of rules about the question (training, packing, optimizer, recipe), which a back-end takes with its own facts."""
DERIVED = frozenset({"dp"})
"""A word for several fields together."""


def every_rule() -> Iterator[tuple[str, SpaceRule]]:
    for room in OURS:
        for release in room.releases:
            for rule in (*release.space.rules.model_rules, *release.space.rules.strategy_rules):
                yield room.name, rule


def test_a_shared_id_is_one_rule_in_every_back_end() -> None:
    """K2, K5 and K6 once meant two things: a rule of a room of its own beside one that all rooms share."""
    meant: dict[str, set[str]] = defaultdict(set)
    for _, rule in every_rule():
        if rule.id.startswith(SHARED):
            meant[rule.id].add(f"{rule.check.__module__}.{rule.check.__qualname__}")
    assert set(meant) == {f"{SHARED}{number + 1}" for number in range(len(meant))}, "ids follow each other"
    assert {name: found for name, found in meant.items() if len(found) > 1} == {}
    assert len({check for found in meant.values() for check in found}) == len(meant), "one rule under two ids"


def test_every_field_and_column_of_a_strategy_has_words_wherever_they_are_shown() -> None:
    names = {field.name for field in fields(Strategy)} | DERIVED
    assert set(FIELD) == names
    meanings = [field.meaning for field in FIELD.values()]
    assert all(meanings)
    assert len(set(meanings)) == len(meanings)
    # A relief is a row's word for what several fields say.
    of_fields = {COLUMN_OF_FIELD.get(name, name) for name in names}
    assert set(COLUMNS) - {"relief"} <= of_fields
    terms = (REPOSITORY / "web" / "src" / "vocabulary.ts").read_text(encoding="utf-8")
    page = (REPOSITORY / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    assert [name for name in FIELD if f"\n  {name}: {{ kind:" not in terms] == []
    assert [name for name in FIELD if f"`{name}`" not in page] == []
