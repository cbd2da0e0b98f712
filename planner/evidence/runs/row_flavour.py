"""The flavour of a row: its source's, changed where the row's own flags say so."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Software
from planner.backends.megatron.physics import MEGATRON_TEST_FLASH, MEGATRON_TEST_UNFUSED
from planner.backends.registry import physics_by_name, software
from planner.errors import NotFound
from planner.evidence.runs.flavours import (
    BF16_OPTIMIZER,
    FLAVOURS,
    JAX,
    LLM_FOUNDRY,
    LLM_FOUNDRY_FIRST,
    LLM_FOUNDRY_FP32,
    NANOTRON,
    NANOTRON_MEETING,
    NANOTRON_STALLING,
    TORCHTITAN,
    Flavour,
    flavour_of,
    flavour_of_library,
)
from planner.evidence.runs.row_model import flags_of
from planner.evidence.runs.software import SoftwareDescription, described
from planner.evidence.runs.truth import TruthRow
from planner.predict.physics.physics import TUNED, Physics

UNFUSED_BACKENDS = frozenset({"unfused", "local"})

MEANINGS = ("allocated", "reserved", "process")
"""What a row may say of its memory figure; what stays between steps (nanotron's counter) is the library's."""

USUAL = {flavour.backend: flavour for flavour in (TORCHTITAN, JAX)}
"""Defaults of back-ends whose published runs had other physics than their releases here."""


def flavour_of_row(row: TruthRow, software_of_row: SoftwareDescription | None = None) -> Flavour:
    """Flavour of a row: that of the back-end or physics which its ``framework`` names, else that of its library.

    HF Ultra-Scale was measured in two passes (``after_pp_fix``); the behaviour of each was found in its rows.
    llm-foundry's tables name their mixed precision.
    TPUs run JAX whoever publishes; DeepSpeed has an optimizer of its own for bf16; Megatron's tests name their
    attention kernel, and its local layers have none of their own.
    """
    named = row_software(row)
    physics = named.release.physics if named else physics_by_name().get(row.framework)
    if physics is not None:
        return _named(physics, named.spelled if named else "", row.zero_or_fsdp)
    said = described(row) if software_of_row is None else software_of_row
    flavour = flavour_of_library(said.library, row.zero_or_fsdp)
    if said.memory_figure in MEANINGS and flavour.memory in MEANINGS and not flavour.megatron_defaults:
        flavour = _counting(flavour, said.memory_figure)
    if row.device.lower().startswith("tpu"):
        return JAX
    if said.library == "megatron-deepspeed-2021" and row.precision.lower() in ("bf16", "bfloat16"):
        return BF16_OPTIMIZER
    if flavour == LLM_FOUNDRY and "mp_mode=DEFAULT" in row.notes:
        return LLM_FOUNDRY_FIRST if "older README" in row.notes else LLM_FOUNDRY_FP32
    if said.library == "nanotron":
        if "after_pp_fix=True" in row.notes:
            return NANOTRON_MEETING
        return NANOTRON_STALLING if (row.pp or 1) > 1 else NANOTRON
    if not flavour.megatron_defaults:
        return flavour
    flags = flags_of(row)
    unfused = flags.get("attention-backend") in UNFUSED_BACKENDS or flags.get("transformer-impl") == "local"
    if unfused:
        return replace(flavour, name=f"{flavour.name}, unfused", traits=MEGATRON_TEST_UNFUSED)
    if row.device.upper().startswith(("A100", "V100")):
        return replace(flavour, name=f"{flavour.name}, flash", traits=MEGATRON_TEST_FLASH)
    return flavour


def _counting(flavour: Flavour, figure: str) -> Flavour:
    """The flavour whose memory figure counts what the row says."""
    return flavour if flavour.memory == figure else replace(flavour, memory=figure)  # type: ignore[arg-type]  # listed


def row_software(row: TruthRow) -> Software | None:
    """The back-end that ``framework`` names (``torchtitan``, ``megatron==2.5``); None for any other word."""
    try:
        return software(row.framework) if row.framework else None
    except NotFound:
        return None


def _named(traits: Physics, backend: str, zero_or_fsdp: str) -> Flavour:
    """Defaults of the first flavour with these traits, else those of that back-end under these traits."""
    if traits == TUNED:
        return flavour_of("", zero_or_fsdp)
    known = [flavour for _, flavour in FLAVOURS]
    same = next((flavour for flavour in known if flavour.traits == traits), None)
    if same is not None:
        return same
    near = USUAL.get(backend.partition("==")[0]) or flavour_of("", zero_or_fsdp)
    return replace(near, name=backend or traits.summary, backend=backend, traits=traits)
