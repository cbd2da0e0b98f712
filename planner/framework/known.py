"""Which frameworks do we know, and what is known of each?  Traits by name, with where they come from."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import DocumentInvalid
from planner.framework.traits import TUNED, FrameworkTraits

MEGATRON_2021 = FrameworkTraits(
    name="megatron-2021",
    summary="Megatron-LM before 2023: eager launches, unfused attention",
    attention="unfused",
    unfused=frozenset({"cross_entropy"}),
    separate_reductions=True,
    launch_s=30e-6,
    call_s=150e-6,
    collective_launches=1.0,
    parameter_hooks=2.0,
    scattered_hops=True,
)
MEGATRON_DEEPSPEED = replace(
    MEGATRON_2021,
    name="megatron-deepspeed",
    summary="Megatron-DeepSpeed of 2021-22: as megatron-2021, DeepSpeed's pipeline engine, 50,257 words unpadded",
    collective_skew_s=120e-6,
    microbatch_s=0.8e-3,
    pads_vocabulary=False,
)

FRAMEWORKS: dict[str, FrameworkTraits] = {traits.name: traits for traits in (TUNED, MEGATRON_2021, MEGATRON_DEEPSPEED)}
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
