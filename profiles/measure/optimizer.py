"""The time of one step of AdamW: torch's fused kernel where it runs, else its foreach form.

fp32 parameters, gradients and both moments: 16 bytes read and 12 written a parameter.  The parameters are split into
tensors of ``TENSOR_ELEMENTS``, as those of a layer are.
"""

from __future__ import annotations

from typing import Any

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import OperatorKind

TENSOR_ELEMENTS = 4 << 20
BYTES_PER_PARAMETER = 16


def optimizer_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """One step over ``num_elements`` parameters."""
    elements = wanted.sizes["num_elements"]
    # A captured step would need the capturable variant, whose kernel differs.
    memory = elements * BYTES_PER_PARAMETER
    shape = {"num_elements": elements}
    return [Case("optimizer", "adamw", "step", dtype, shape, memory, wanted.value, graph=False)]


def prepare_optimizer(case: Case, device: MeasuredDevice) -> Prepared:
    """Parameters with gradients, and one step taken, so that the moments exist."""
    torch = import_torch()
    left = case.shape["num_elements"]
    parameters = []
    while left:
        size = min(left, TENSOR_ELEMENTS)
        left -= size
        parameter = torch.nn.Parameter(device.normal((size,), case.dtype))
        parameter.grad = device.normal((size,), case.dtype)
        parameters.append(parameter)
    step, implementation = _stepping(torch, parameters)
    return Prepared(step, {"implementation": implementation, "num_tensors": len(parameters)})


def _stepping(torch: Any, parameters: list[Any]) -> tuple[Any, str]:
    for switch in ("fused", "foreach"):
        try:
            optimizer = torch.optim.AdamW(parameters, lr=1e-4, **{switch: True})
            optimizer.step()
        except (RuntimeError, NotImplementedError, TypeError):
            continue
        return optimizer.step, f"torch AdamW {switch}"
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    optimizer.step()
    return optimizer.step, "torch AdamW"


OPTIMIZER = OperatorKind(optimizer_cases, prepare_optimizer, ("fp32",))
