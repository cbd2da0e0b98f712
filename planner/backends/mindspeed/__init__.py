"""MindSpeed on Megatron-LM core_v0.12.1 (Huawei Ascend): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.backends.mindspeed.flag_table import CORE_VERSION
from planner.backends.mindspeed.project import project
from planner.backends.mindspeed.read import read_back
from planner.backends.mindspeed.space import rules, violations
from planner.backends.mindspeed.write import emit
from planner.backends.rules.rule import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (CORE_VERSION,)
