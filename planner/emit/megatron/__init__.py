"""Megatron-LM (megatron-core 0.19.2): rules, projection, emission, reading back."""

from __future__ import annotations

from planner.emit.megatron.emit import MEGATRON_CORE_VERSION, emit
from planner.emit.megatron.project import project
from planner.emit.megatron.read_back import read_back
from planner.emit.megatron.rules import rules, violations
from planner.emit.rule_input import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (MEGATRON_CORE_VERSION,)
