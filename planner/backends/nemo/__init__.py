"""NeMo 2.4.0 performance recipes, and its releases before Megatron-Core's FSDP and DeepEP; all predict only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.nemo.physics import NEMO, NEMO_2_1, NEMO_2_2
from planner.backends.nemo.space import SPACE
from planner.backends.nemo.space_early import SPACE_2_1, SPACE_2_2

BACKEND = BackEnd(
    name="nemo",
    title="NeMo",
    summary="NeMo 2 performance recipes: tuned megatron-core with DeepEP dispatch",
    releases=(
        Release("2.4.0", SPACE, NEMO),
        Release("2.2.0", SPACE_2_2, NEMO_2_2),
        Release("2.1.0", SPACE_2_1, NEMO_2_1),
    ),
    vendors=frozenset({"NVIDIA"}),
)
