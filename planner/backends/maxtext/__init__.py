"""MaxText on JAX, for TPU and GPU clusters: rules, projection, emission, reading back."""

from __future__ import annotations

from planner.backends.maxtext.project import project
from planner.backends.maxtext.read import read_back
from planner.backends.maxtext.space import rules, violations
from planner.backends.maxtext.version import MAXTEXT_VERSION
from planner.backends.maxtext.write import emit
from planner.backends.rules.rule import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (MAXTEXT_VERSION,)
