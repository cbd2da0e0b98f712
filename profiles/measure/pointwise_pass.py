"""Forward and backward passes of memory-bound operators, prepared for norms, losses and activations.

The backward pass reuses one forward pass and returns the gradients of all differentiable inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import DTYPE_BYTES
from profiles.observations.records import Phase, Scalar


def pass_cases(operator: str, width: str, forward: int, backward: int) -> Callable[[WantedShape, str], list[Case]]:
    """Cases of both passes over ``num_tokens x width`` elements, which move so many tensors of that size each."""
    phases: tuple[tuple[Phase, int], ...] = (("forward", forward), ("backward", backward))

    def cases(wanted: WantedShape, dtype: str) -> list[Case]:
        size_bytes = wanted.sizes["num_tokens"] * wanted.sizes[width] * DTYPE_BYTES[dtype]
        return [
            Case(operator, wanted.name, phase, dtype, dict(wanted.sizes), size_bytes * tensors, wanted.value)
            for phase, tensors in phases
        ]

    return cases


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
