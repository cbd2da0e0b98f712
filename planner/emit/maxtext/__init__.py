"""MaxText on JAX, for TPU and GPU clusters: rules, projection, emission, reading back."""

from __future__ import annotations

from planner.emit.maxtext.emit import emit
from planner.emit.maxtext.project import project
from planner.emit.maxtext.read_back import read_back
from planner.emit.maxtext.rules import rules, violations
from planner.emit.maxtext.version import MAXTEXT_VERSION
from planner.emit.rule_input import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (MAXTEXT_VERSION,)
