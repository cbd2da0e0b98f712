"""Times of the non-linearity between two matrices: silu(gate) * up, and gelu; forward and backward.

Run as torch runs it eagerly: silu_mul is two kernels forward.  A fused kernel is faster; the detail says which it is.
"""

from __future__ import annotations

from profiles.measure.case import Case, Prepared
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import OperatorKind
from profiles.measure.pointwise_pass import pass_cases, prepare_pass


def prepare_activation(case: Case, device: MeasuredDevice) -> Prepared:
    """``name`` is silu_mul or gelu."""
    functional = import_torch().nn.functional
    size = (case.shape["num_tokens"], case.shape["ffn_hidden_size"])
    if case.name == "silu_mul":
        gate, up = device.normal(size, case.dtype), device.normal(size, case.dtype)
        eager = {"implementation": "eager, silu then multiply"}
        return prepare_pass(case, device, lambda g, u: functional.silu(g) * u, (gate, up), dict(eager))
    return prepare_pass(case, device, functional.gelu, (device.normal(size, case.dtype),), {"implementation": "eager"})


ACTIVATION = OperatorKind(
    pass_cases("activation", "ffn_hidden_size", forward=4, backward=7), prepare_activation, ("bf16", "fp16", "fp32")
)
