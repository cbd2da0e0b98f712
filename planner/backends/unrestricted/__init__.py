"""The whole declared space, whatever runs it: for study."""

from __future__ import annotations

from planner.backends.backend import BackEnd, Release
from planner.backends.unrestricted.space import SPACE
from planner.predict.physics.physics import TUNED

BACKEND = BackEnd(
    name="unrestricted",
    title="unrestricted",
    summary="the whole declared space under the neutral physics, for study",
    releases=(Release("", SPACE, TUNED),),
    vendors=frozenset({}),
)
