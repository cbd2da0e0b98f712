"""The native trainer writes no checkpoints."""

from __future__ import annotations

from planner.backends.resuming import Resuming

RESUMING = Resuming(saves=False)
