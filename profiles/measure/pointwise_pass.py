"""Forward and backward passes of memory-bound operators, prepared for norms, losses and activations.

The backward pass reuses one forward pass and returns the gradients of all differentiable inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from profiles.measure.case import Case, Prepared
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.observations.records import Scalar


def prepare_pass(
    case: Case,
    device: MeasuredDevice,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    detail: dict[str, Scalar] | None = None,
) -> Prepared:
    """``function(*inputs)`` without a tape (forward), or the gradients of ``inputs`` (backward)."""
    torch = import_torch()
    if case.phase == "forward":

        def forward() -> Any:
            with torch.no_grad():
                return function(*inputs)

        return Prepared(forward, detail or {})
    tracked = tuple(each.requires_grad_() for each in inputs)
    output = function(*tracked)
    gradient = torch.ones_like(output) if output.dim() == 0 else device.normal(tuple(output.shape), case.dtype)
    return Prepared(lambda: torch.autograd.grad(output, tracked, gradient, retain_graph=True), detail or {})
