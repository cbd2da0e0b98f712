"""The rules by which a row's software is read from its own words: ``software_rules.toml``, first match of a fact wins.

A rule looks for a pattern in some columns of the row and gives one fact one value.  Facts are those of
``planner.evidence.runs.software``; a column of the fact's own name (``attention``, ``training``, ...) goes before every
rule, so a CSV can state what its rows' words do not.  Rules of the column ``source`` with ``publication`` state what a
publication says about all of its runs, outside of its rows: they are facts of software, never numbers, and
``meshwright accuracy`` leaves them out when it judges a source as unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from profiles.shipped_tables import shipped_table


@dataclass(frozen=True, slots=True)
class Rule:
    """``pattern`` in one of ``columns`` gives ``fact`` its ``value``."""

    fact: str
    value: str
    columns: tuple[str, ...]
    pattern: str
    why: str
    publication: bool = False

    def says(self, words: dict[str, str]) -> bool:
        """Whether the row's words match."""
        return any(_compiled(self.pattern).search(words[column]) for column in self.columns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


@cache
def software_rules() -> tuple[Rule, ...]:
    """The rules of ``software_rules.toml`` in the order in which they are asked."""
    rows = shipped_table("planner.evidence.runs", "software_rules.toml")["rules"]
    return tuple(Rule(**{**row, "columns": tuple(row["columns"])}) for row in rows)


@cache
def library_rules() -> tuple[Rule, ...]:
    """The rules that say which software it was."""
    return tuple(rule for rule in software_rules() if rule.fact == "library")
