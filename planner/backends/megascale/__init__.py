"""MegaScale, ByteDance's Megatron-LM of 2024; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.megascale.physics import MEGASCALE
from planner.backends.megascale.space import SPACE

BACKEND = BackEnd(
    name="megascale",
    title="MegaScale",
    summary="ByteDance's Megatron-LM of 2024: ZeRO-2 under an interleaved pipeline",
    releases=(Release("2024", SPACE, MEGASCALE),),
    vendors=frozenset({"NVIDIA"}),
)
