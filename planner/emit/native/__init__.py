"""Native PyTorch (``planner.native``): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.emit.native.emit import emit
from planner.emit.native.project import project
from planner.emit.native.read_back import read_back
from planner.emit.native.rules import rules, violations
from planner.emit.rule_input import RuleInput, rule_input
from planner.native.capabilities import TORCH_VERSION

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (TORCH_VERSION,)
