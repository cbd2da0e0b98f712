"""Hugging Face Accelerate (1.15.0): rules, projection, emission, reading back.

One of four ways, by the strategy: FSDP2 with a ``ParallelismConfig`` (ZeRO-2, ZeRO-3, hybrid sharding, tp, cp),
DeepSpeed with our ``ds_config.json`` (ZeRO-1, optimizer offload), DDP (no ZeRO), one process.
"""

from __future__ import annotations

from planner.emit.accelerate.config import ACCELERATE_VERSION
from planner.emit.accelerate.emit import emit
from planner.emit.accelerate.project import project
from planner.emit.accelerate.read_back import read_back
from planner.emit.accelerate.rules import rules, violations
from planner.emit.rule_input import RuleInput, rule_input

__all__ = ["VERSIONS", "RuleInput", "emit", "project", "read_back", "rule_input", "rules", "violations"]

VERSIONS: tuple[str, ...] = (ACCELERATE_VERSION,)
