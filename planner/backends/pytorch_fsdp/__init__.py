"""A plain PyTorch FSDP trainer; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.pytorch_fsdp.physics import PYTORCH_FSDP
from planner.backends.pytorch_fsdp.space import SPACE

BACKEND = BackEnd(
    name="pytorch-fsdp",
    title="PyTorch FSDP",
    summary="a plain PyTorch FSDP trainer, compiled",
    releases=(Release("2", SPACE, PYTORCH_FSDP),),
    vendors=frozenset({"NVIDIA", "AMD"}),
)
