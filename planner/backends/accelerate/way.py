"""The distributed type of Accelerate through which a strategy runs."""

from __future__ import annotations

from typing import Literal

from planner.strategy.strategy import Strategy

Way = Literal["NO", "MULTI_GPU", "FSDP", "DEEPSPEED"]
"""``distributed_type`` of the config file."""
WAY_FIELDS = ("optimizer_offload", "zero_stage", "tp", "cp", "pp", "dp")
"""Fields that ``way`` looks at."""


def way(s: Strategy) -> Way:
    """ZeRO-1 and optimizer offload exist only in DeepSpeed, which takes neither tp nor cp here; FSDP2 has the rest."""
    if s.optimizer_offload or (s.zero_stage == 1 and s.tp * s.cp == 1 and s.world_size > 1):
        return "DEEPSPEED"
    if s.world_size == 1:
        return "NO"
    return "FSDP" if s.zero_stage >= 2 else "MULTI_GPU"
