"""Megatron-Bridge (0.6.2, what NeMo trains language models with): rules, projection, emission, reading back.

Bridge runs megatron-core, so the projection and the rules are Megatron's, with Bridge's own names and extra rules.
"""

from __future__ import annotations

from planner.emit.megatron.project import project
from planner.emit.megatron_bridge.emit import emit
from planner.emit.megatron_bridge.overrides import BRIDGE_VERSION
from planner.emit.megatron_bridge.read_back import read_back
from planner.emit.megatron_bridge.rules import rules, violations
from planner.emit.rule_input import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (BRIDGE_VERSION,)
"""Releases that files can be written for."""
