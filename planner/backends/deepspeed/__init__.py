"""DeepSpeed (0.19.8): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.backends.deepspeed.project import project
from planner.backends.deepspeed.read import read_back
from planner.backends.deepspeed.space import rules, violations
from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.deepspeed.write import emit
from planner.backends.rules.rule import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (DEEPSPEED_VERSION,)
