"""llm-foundry 0.3.0; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.llm_foundry.physics import LLM_FOUNDRY
from planner.backends.llm_foundry.space import SPACE

BACKEND = BackEnd(
    name="llm-foundry",
    title="llm-foundry",
    summary="llm-foundry: FSDP around MPT models",
    releases=(Release("0.3.0", SPACE, LLM_FOUNDRY),),
    vendors=frozenset({"NVIDIA"}),
)
