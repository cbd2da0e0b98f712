"""NeMo 2.4.0 performance recipes; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.nemo.physics import NEMO
from planner.backends.nemo.space import SPACE

BACKEND = BackEnd(
    name="nemo",
    title="NeMo",
    summary="NeMo 2 performance recipes: tuned megatron-core with DeepEP dispatch",
    releases=(Release("2.4.0", SPACE, NEMO),),
    vendors=frozenset({"NVIDIA"}),
)
