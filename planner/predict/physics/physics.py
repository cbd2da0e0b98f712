"""The physics of a back-end: facts of software that change time or memory.

The operators of a model say what has to be computed; a back-end decides how many kernels that takes and which of them
are fused (``kernels``), how fast its host code launches them (``host``), what its collectives cost beside their bytes
(``communication``), and what its allocator and optimizer keep (``memory``).  The neutral traits are those of a tuned
Megatron-Core run: fused kernels, a host that is never late.  ``planner.backends.registry`` names every one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.predict.physics.communication import CommunicationTraits
from planner.predict.physics.host import HostTraits
from planner.predict.physics.kernels import KernelTraits
from planner.predict.physics.memory import MemoryTraits

EXPERTS_SPREAD = 0.24
"""Further spread of models with routed experts: uneven routing, small grouped matmuls, dispatchers that change from
release to release.  From the fitted part of NVIDIA's tables: 0.193 with experts, 0.070 without; a third wider."""


@dataclass(frozen=True)
class Physics(HostTraits, KernelTraits, CommunicationTraits, MemoryTraits):
    """What one back-end adds to operators, collectives and memory; the defaults add nothing."""

    name: str = "tuned"
    summary: str = "a tuned Megatron-Core run"
    time_spread: float | None = None
    """Standard deviation of ln(measured / predicted) of whole steps, datasheet inputs: the 90th percentile of its size
    on the fitted part of published runs over 1.645, a third wider because other groups of runs differ more; None =
    not studied, the priors of ``planner.predict.uncertainty`` stand."""
    studied_devices: int = 0
    """Devices of the largest of those runs."""

    def spread_at(self, num_devices: int, *, experts: bool, traced: bool = False) -> float | None:
        """Spread of a job of a size that was studied, of a model with routed ``experts`` or without; None beyond it.

        No studied run is of a ``traced`` model: its interval is the wide one of software that nobody studied.
        """
        if self.time_spread is None or num_devices > self.studied_devices or traced:
            return None
        return math.hypot(self.time_spread, EXPERTS_SPREAD) if experts else self.time_spread


TUNED = Physics()
