"""MindSpeed on Megatron-LM core_v0.12.1 (Huawei Ascend): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.emit.mindspeed.emit import emit
from planner.emit.mindspeed.flag_table import CORE_VERSION
from planner.emit.mindspeed.project import project
from planner.emit.mindspeed.read_back import read_back
from planner.emit.mindspeed.rules import rules, violations
from planner.emit.rule_input import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (CORE_VERSION,)
