"""DeepSpeed (0.19.8): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.emit.deepspeed.emit import emit
from planner.emit.deepspeed.project import project
from planner.emit.deepspeed.read_back import read_back
from planner.emit.deepspeed.rules import rules, violations
from planner.emit.deepspeed.version import DEEPSPEED_VERSION
from planner.emit.rule_input import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (DEEPSPEED_VERSION,)
