"""The physics of a run: its flavour's, changed by what its software description says."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.torchtitan.physics import COMPILED_LOGIT_BYTES
from planner.evidence.runs.flavours import DEFAULT, SOME_FSDP, Flavour
from planner.evidence.runs.software import SoftwareDescription
from planner.predict.physics.physics import Physics

FUSED_BY: dict[str, frozenset[str]] = {
    "liger": frozenset({"norm", "activation", "rope"}),
    "fast-kernels": frozenset({"norm", "rope"}),
    "te": frozenset({"norm", "activation", "rope"}),
}
"""Operator classes that a library of kernels fuses (liger_kernel.transformers; fms-acceleration's fused operators)."""


def described_traits(flavour: Flavour, said: SoftwareDescription) -> Physics:
    """Traits of a run.  Attention is the library's unless the library is unknown or runs PyTorch's layers."""
    traits = flavour.traits
    if traits.unfused and said.compiles:
        traits = replace(traits, unfused=frozenset(), eager_pointwise=False, keeps_gate_output=False, norm_copies=0.0)
    if traits.operator_checkpointing and said.compiles:
        traits = replace(traits, compiled_checkpointing=True)
    if flavour.backend == "torchtitan" and said.loss == "fused" and said.compiles:
        traits = replace(traits, kept_logit_bytes=COMPILED_LOGIT_BYTES, passing_logit_bytes=COMPILED_LOGIT_BYTES)
    if said.loss == "log-probabilities":
        traits = replace(traits, log_probability_loss=True)
    if said.loss == "wide":
        traits = replace(traits, wide_loss=True)
    if said.launches == "blocking":
        traits = replace(traits, blocking_launches=True)
    if flavour.whole_layers:
        fused = FUSED_BY.get(said.kernels, frozenset())
        fused |= frozenset({"cross_entropy"}) if said.loss in ("fused", "chunked") else frozenset()
        traits = replace(traits, unfused=traits.unfused - fused)
    open_to_it = flavour.whole_layers or flavour in (DEFAULT, SOME_FSDP)
    if open_to_it and said.attention in ("best", "flash2", "triton", "unfused"):
        traits = replace(traits, attention=said.attention)  # type: ignore[arg-type]  # one of the four above
    return traits
