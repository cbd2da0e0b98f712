"""Megatron-Bridge (0.6.2, what NeMo trains language models with): rules, projection, emission, reading back.

Bridge runs megatron-core, so the projection and the rules are Megatron's, with Bridge's own names and extra rules.
"""

from __future__ import annotations

from planner.backends.megatron.project import project
from planner.backends.megatron_bridge.overrides import BRIDGE_VERSION
from planner.backends.megatron_bridge.read import read_back
from planner.backends.megatron_bridge.space import rules, violations
from planner.backends.megatron_bridge.write import emit
from planner.backends.rules.rule import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (BRIDGE_VERSION,)
"""Releases that files can be written for."""
