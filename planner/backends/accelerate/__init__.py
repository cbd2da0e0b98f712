"""Hugging Face Accelerate (1.15.0): rules, projection, emission, reading back.

One of four ways, by the strategy: FSDP2 with a ``ParallelismConfig`` (ZeRO-2, ZeRO-3, hybrid sharding, tp, cp),
DeepSpeed with our ``ds_config.json`` (ZeRO-1, optimizer offload), DDP (no ZeRO), one process.
"""

from __future__ import annotations

from planner.backends.accelerate.config import ACCELERATE_VERSION
from planner.backends.accelerate.project import project
from planner.backends.accelerate.read import read_back
from planner.backends.accelerate.space import rules, violations
from planner.backends.accelerate.write import emit
from planner.backends.rules.rule import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (ACCELERATE_VERSION,)
