"""torchtitan (0.3.0, and the TOML of 0.2.2): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.backends.rules.rule import RuleInput, rule_input
from planner.backends.torchtitan.project import project
from planner.backends.torchtitan.read import read_back
from planner.backends.torchtitan.space import rules, violations
from planner.backends.torchtitan.version import VERSIONS
from planner.backends.torchtitan.write import emit

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]
