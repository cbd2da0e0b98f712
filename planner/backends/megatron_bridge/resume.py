"""Megatron Bridge's checkpoints: those of Megatron-Core, set by its own configuration.

Read at NVIDIA-NeMo/Megatron-Bridge 067f987d.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.megatron.resume import EFFECTS, FSDP_DTENSOR, TORCH_DIST, WRITTEN
from planner.backends.resuming import Resuming

AT = "NVIDIA-NeMo/Megatron-Bridge 067f987d src/megatron/bridge/training/checkpointing.py"
_default, _whole = TORCH_DIST.ways
RESUMING = Resuming(
    (
        replace(
            TORCH_DIST,
            ways=(
                replace(_default, source=f"{AT}:3886-3893; {_default.source}"),
                replace(
                    _whole,
                    saved_with=f"checkpoint.dist_ckpt_optim_fully_reshardable=true, {WRITTEN}",
                    source=f"{AT}:2892, 3886; {_whole.source}",
                ),
            ),
        ),
        FSDP_DTENSOR,
    ),
    EFFECTS,
)
