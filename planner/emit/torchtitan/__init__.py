"""torchtitan (0.3.0, and the TOML of 0.2.2): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.emit.rule_input import RuleInput, rule_input
from planner.emit.torchtitan.emit import emit
from planner.emit.torchtitan.project import project
from planner.emit.torchtitan.read_back import read_back
from planner.emit.torchtitan.rules import rules, violations
from planner.emit.torchtitan.version import VERSIONS

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]
