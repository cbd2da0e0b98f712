"""How does a training framework run what the model lists?  Facts of software that change time or memory.

The operators of a model say what has to be computed; a framework decides how many kernels that takes, which of them
are fused, how fast its host code launches them, what its collectives cost beside their bytes, and what its allocator
and optimizer keep.  The neutral traits are those of a tuned Megatron-Core run: fused kernels, a host that is never
late.  ``planner.framework.known`` holds the traits of the frameworks whose runs were studied.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrameworkTraits:
    """What one framework adds to operators, collectives and memory; the defaults add nothing."""

    name: str = "tuned"


TUNED = FrameworkTraits()
