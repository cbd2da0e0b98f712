"""NeMo Automodel 0.5.0; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.nemo_automodel.physics import AUTOMODEL
from planner.backends.nemo_automodel.space import SPACE

BACKEND = BackEnd(
    name="nemo-automodel",
    title="NeMo Automodel",
    summary="NeMo Automodel: Hugging Face models under FSDP2",
    releases=(Release("0.5.0", SPACE, AUTOMODEL),),
    vendors=frozenset({"NVIDIA"}),
)
