"""Native PyTorch (``planner.native``): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.backends.native.project import project
from planner.backends.native.read import read_back
from planner.backends.native.space import rules, violations
from planner.backends.native.write import emit
from planner.backends.rules.rule import RuleInput, rule_input
from planner.native.capabilities import TORCH_VERSION

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (TORCH_VERSION,)
