"""How does a training framework run what the model lists?  Facts of software that change time or memory.

The operators of a model say what has to be computed; a framework decides how many kernels that takes and which of them
are fused (``kernels``), how fast its host code launches them (``host``), what its collectives cost beside their bytes
(``communication``), and what its allocator and optimizer keep (``memory``).  The neutral traits are those of a tuned
Megatron-Core run: fused kernels, a host that is never late.  ``known`` lists the frameworks whose runs were studied.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.framework.communication import CommunicationTraits
from planner.framework.host import HostTraits
from planner.framework.kernels import KernelTraits
from planner.framework.memory import MemoryTraits


@dataclass(frozen=True)
class FrameworkTraits(HostTraits, KernelTraits, CommunicationTraits, MemoryTraits):
    """What one framework adds to operators, collectives and memory; the defaults add nothing."""

    name: str = "tuned"
    summary: str = "a tuned Megatron-Core run"
    time_spread: float | None = None
    """Standard deviation of ln(measured / predicted) of whole steps, datasheet inputs: the 90th percentile of its size
    on the fitted part of published runs over 1.645, a third wider because other groups of runs differ more; None =
    not studied, the priors of ``planner.uncertainty`` stand."""
    studied_devices: int = 0
    """Devices of the largest of those runs."""

    def spread_at(self, num_devices: int) -> float | None:
        """``time_spread`` for a job of a size that was studied; None beyond it."""
        return self.time_spread if num_devices <= self.studied_devices else None


TUNED = FrameworkTraits()
