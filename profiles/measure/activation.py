"""Times of the non-linearity between two matrices: silu(gate) * up, and gelu; forward and backward.

Run as torch runs it eagerly: silu_mul is two kernels forward.  A fused kernel is faster; the detail says which it is.
"""

from __future__ import annotations

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import DTYPE_BYTES, OperatorKind
from profiles.measure.pointwise_pass import prepare_pass
from profiles.observations.records import Phase


def activation_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """Forward and backward of the activation that the shape names."""
    elements = wanted.sizes["num_tokens"] * wanted.sizes["ffn_hidden_size"]
    phases: tuple[tuple[Phase, int], ...] = (("forward", 4), ("backward", 7))
    return [
        Case(
            "activation",
            wanted.name,
            phase,
            dtype,
            dict(wanted.sizes),
            elements * tensors * DTYPE_BYTES[dtype],
            wanted.value,
        )
        for phase, tensors in phases
    ]


def prepare_activation(case: Case, device: MeasuredDevice) -> Prepared:
    """``name`` is silu_mul or gelu."""
    functional = import_torch().nn.functional
    size = (case.shape["num_tokens"], case.shape["ffn_hidden_size"])
    if case.name == "silu_mul":
        gate, up = device.normal(size, case.dtype), device.normal(size, case.dtype)
        eager = {"implementation": "eager, silu then multiply"}
        return prepare_pass(case, device, lambda g, u: functional.silu(g) * u, (gate, up), dict(eager))
    return prepare_pass(case, device, functional.gelu, (device.normal(size, case.dtype),), {"implementation": "eager"})


ACTIVATION = OperatorKind(activation_cases, prepare_activation, ("bf16", "fp16", "fp32"))
