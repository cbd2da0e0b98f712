"""nanotron of 2024-25; predicts only."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.nanotron.physics import NANOTRON
from planner.backends.nanotron.space import SPACE

BACKEND = BackEnd(
    name="nanotron",
    title="nanotron",
    summary="nanotron of 2024-25",
    releases=(Release("0.5", SPACE, NANOTRON),),
    vendors=frozenset({"NVIDIA"}),
)
