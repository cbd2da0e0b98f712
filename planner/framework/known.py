"""Which frameworks do we know?  Traits by the name that a user gives."""

from __future__ import annotations

from planner.errors import DocumentInvalid
from planner.framework.hugging_face import ACCELERATE, DEEPSPEED
from planner.framework.maxtext import MAXTEXT
from planner.framework.megatron import MEGASCALE, MEGATRON_2021, MEGATRON_CORE, MEGATRON_DEEPSPEED, NEMO
from planner.framework.mindspeed import MINDSPEED
from planner.framework.nanotron import NANOTRON
from planner.framework.pytorch import (
    AUTOMODEL,
    HUGGING_FACE,
    LLM_FOUNDRY,
    NATIVE,
    PYTORCH_FSDP,
    TORCHTITAN,
    TORCHTITAN_COMPILED,
)
from planner.framework.traits import TUNED, FrameworkTraits

FRAMEWORKS: dict[str, FrameworkTraits] = {
    traits.name: traits
    for traits in (
        TUNED,
        NEMO,
        MEGATRON_CORE,
        MEGASCALE,
        MEGATRON_2021,
        MEGATRON_DEEPSPEED,
        NANOTRON,
        PYTORCH_FSDP,
        TORCHTITAN,
        TORCHTITAN_COMPILED,
        LLM_FOUNDRY,
        AUTOMODEL,
        HUGGING_FACE,
        NATIVE,
        DEEPSPEED,
        ACCELERATE,
        MAXTEXT,
        MINDSPEED,
    )
}
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
