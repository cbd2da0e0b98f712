"""Megatron-LM (megatron-core 0.19.2): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.backends.megatron.project import project
from planner.backends.megatron.read import read_back
from planner.backends.megatron.space import rules, violations
from planner.backends.megatron.write import MEGATRON_CORE_VERSION, emit
from planner.backends.rules.rule import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (MEGATRON_CORE_VERSION,)
