"""Which frameworks do we know, and what is known of each?  Traits by name, with where they come from."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import DocumentInvalid
from planner.framework.traits import TUNED, FrameworkTraits

MEGATRON_DEEPSPEED = FrameworkTraits(name="megatron-deepspeed", summary="Megatron-DeepSpeed of 2021-22", attention="unfused")
NANOTRON = FrameworkTraits(
    name="nanotron",
    summary="nanotron of 2024-25",
    launch_s=32e-6,
    eager_pointwise=True,
    parameter_hooks=3.0,
    accumulation_bytes=10.0,
    bucket_bytes=25.0 * 2**20,
    gather_by_tensor=True,
    bucket_launches=10.0,
    attention="flash2",
    unfused=frozenset({"activation", "cross_entropy", "rope"}),
)
NANOTRON_MEETING = replace(NANOTRON, name="nanotron, ranks meet", meeting_s=205e-6)
NANOTRON_STALLING = replace(NANOTRON_MEETING, name="nanotron, ranks meet, stages stall", transfer_stall_s=0.24)

FRAMEWORKS: dict[str, FrameworkTraits] = {traits.name: traits for traits in (TUNED, MEGATRON_DEEPSPEED, NANOTRON)}
"""By the name that ``--framework`` and ``Problem.framework`` use."""


def framework_traits(name: str) -> FrameworkTraits:
    """Traits of one framework.  Raises DocumentInvalid with the names that exist."""
    if name not in FRAMEWORKS:
        raise DocumentInvalid(
            f"no framework is called {name!r}",
            where="--framework",
            hint=f"choose among {', '.join(sorted(FRAMEWORKS))}",
        )
    return FRAMEWORKS[name]
