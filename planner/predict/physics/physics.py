"""The physics of a back-end: facts of software that change time or memory.

The operators of a model say what has to be computed; a back-end decides how many kernels that takes and which of them
are fused (``kernels``), how fast its host code launches them (``host``), what its collectives cost beside their bytes
(``communication``), and what its allocator and optimizer keep (``memory``).  The neutral traits are those of a tuned
Megatron-Core run: fused kernels, a host that is never late.  ``planner.backends.registry`` names every one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.predict.physics.communication import CommunicationTraits
from planner.predict.physics.host import HostTraits
from planner.predict.physics.kernels import KernelTraits, attention_on
from planner.predict.physics.memory import MemoryTraits

EXPERTS_SPREAD = 0.24
"""Further spread of models with many small routed experts: uneven routing, small grouped matmuls, dispatchers that
change from release to release.  From the fitted part of NVIDIA's tables, a third wider (0.193 with, 0.070 without)."""
FEW_EXPERTS = 16
"""Up to so many experts they are as wide as a dense layer's, and so are their matmuls and messages."""
FEW_EXPERTS_SPREAD = 0.05
"""Further spread of those: fitted part, Grok under two releases of NeMo (12 rows), 90th percentile of the error over
1.645: 0.035, a third wider.  On rows that chose nothing (Grok, Mixtral: 29) the sum holds all."""
GRACE = ("GB200", "GB300")
"""Devices whose host is a Grace processor, by the start of their names."""


@dataclass(frozen=True)
class Physics(HostTraits, KernelTraits, CommunicationTraits, MemoryTraits):
    """What one back-end adds to operators, collectives and memory; the defaults add nothing."""

    name: str = "tuned"
    summary: str = "a tuned Megatron-Core run"
    time_spread: float | None = None
    """Standard deviation of ln(measured / predicted) of whole steps, datasheet inputs: the 90th percentile of its size
    on the fitted part of published runs over 1.645.  Of runs of one publication it is a third wider, because other
    groups of runs differ more; where other publications are known to, their spread is added.  None = not studied, the
    priors of ``planner.predict.uncertainty`` stand."""
    studied_devices: int = 0
    """Devices of the largest of those runs."""

    def on(self, device: str, architecture: str) -> Physics:
        """The same as it behaves on one device: which attention kernel runs there, and what its host captures."""
        graphed = self.graphed | self.graphed_on_grace if device.upper().startswith(GRACE) else self.graphed
        return replace(self, attention=attention_on(self.attention, architecture), graphed=graphed)

    def spread_at(
        self, num_devices: int, *, experts: int, traced: bool = False, breakdown_s: Mapping[str, float] | None = None
    ) -> float | None:
        """Spread of a job of a size that was studied, of a model with so many routed ``experts``; None beyond it.

        No studied run is of a ``traced`` model: its interval is the wide one of software that nobody studied.
        ``breakdown_s``: terms of the step, of which the host's may have a spread of their own (``host_spread``).
        """
        if self.time_spread is None or num_devices > self.studied_devices or traced:
            return None
        waiting = breakdown_s.get("host", 0.0) / sum(breakdown_s.values()) if breakdown_s else 0.0
        routed = 0.0 if not experts else FEW_EXPERTS_SPREAD if experts <= FEW_EXPERTS else EXPERTS_SPREAD
        return math.hypot(self.time_spread, self.host_spread * waiting, routed)


TUNED = Physics()
