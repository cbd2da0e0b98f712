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


TUNED = FrameworkTraits()
