"""Which frameworks do we know, and what is known of each?  Traits by name, with where they come from."""

from __future__ import annotations

from planner.errors import DocumentInvalid
from planner.framework.traits import TUNED, FrameworkTraits

MEGATRON_DEEPSPEED = FrameworkTraits(
    name="megatron-deepspeed",
    summary="Megatron-DeepSpeed of 2021-22: eager launches, unfused attention",
    attention="unfused",
    launch_s=20e-6,
    collective_launches=1.0,
    parameter_hooks=2.0,
    call_s=205e-6,
    microbatch_s=1.2e-3,
    pads_vocabulary=False,
)

FRAMEWORKS: dict[str, FrameworkTraits] = {traits.name: traits for traits in (TUNED, MEGATRON_DEEPSPEED)}
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
