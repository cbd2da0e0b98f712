"""Hugging Face Trainer with DistributedDataParallel; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.hugging_face.physics import HUGGING_FACE
from planner.backends.hugging_face.space import SPACE

BACKEND = BackEnd(
    name="hugging-face",
    title="Hugging Face Trainer",
    summary="Hugging Face models, eager, one device or plain data parallelism",
    releases=(Release("4", SPACE, HUGGING_FACE),),
    vendors=frozenset({"NVIDIA", "AMD"}),
)
