"""Megatron-DeepSpeed of 2021-22; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.megatron_deepspeed.physics import MEGATRON_DEEPSPEED_PIPELINE
from planner.backends.megatron_deepspeed.space import SPACE

BACKEND = BackEnd(
    name="megatron-deepspeed",
    title="Megatron-DeepSpeed",
    summary="Megatron-DeepSpeed of 2021-22: Megatron-LM's model under DeepSpeed's pipeline engine",
    releases=(Release("2022", SPACE, MEGATRON_DEEPSPEED_PIPELINE),),
    vendors=frozenset({"NVIDIA"}),
)
