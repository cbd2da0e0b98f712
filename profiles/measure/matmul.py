"""Times of a product with a weight matrix, forward and for both gradients.

    forward  y[m, n]  = x[m, k]      W[n, k]^T     layout TN
    dgrad    dx[m, k] = dy[m, n]     W[n, k]       layout NN
    wgrad    dW[n, k] = dy[m, n]^T   x[m, k]       layout NT

``shape`` is the product as it runs, [m, k] x [k, n]: the gradients have the forward's sizes in another order.
fp8: ``torch._scaled_mm`` with one scale a tensor, e4m3 inputs and e5m2 gradients, bf16 output; both operands lie along
the summed axis, as the kernel wants them, so the transposes that training needs for the gradients are not part of the
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import DTYPE_BYTES, OperatorKind
from profiles.observations.records import Phase

if TYPE_CHECKING:
    import torch

PHASES: tuple[tuple[Phase, str], ...] = (("forward", "TN"), ("dgrad", "NN"), ("wgrad", "NT"))


def matmul_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """Three phases of one forward (m, n, k)."""
    m, n, k = (wanted.sizes[name] for name in ("m", "n", "k"))
    products = {"forward": (m, n, k), "dgrad": (m, k, n), "wgrad": (n, k, m)}
    return [_case(phase, layout, products[phase], wanted, dtype) for phase, layout in PHASES]


def _case(phase: Phase, layout: str, product: tuple[int, int, int], wanted: WantedShape, dtype: str) -> Case:
    m, n, k = product
    moved = (m * k + k * n) * DTYPE_BYTES[dtype] + m * n * max(DTYPE_BYTES[dtype], 2)
    return Case(
        "matmul",
        "linear",
        phase,
        dtype,
        {"m": m, "n": n, "k": k},
        moved,
        wanted.value,
        detail={"layout": layout},
    )


def prepare_matmul(case: Case, device: MeasuredDevice) -> Prepared:
    """Random operands in the layout of the phase."""
    m, n, k = (case.shape[name] for name in ("m", "n", "k"))
    if case.dtype == "fp8":
        return _prepare_fp8(case, device, (m, n, k))
    torch = import_torch()
    if case.phase == "forward":
        left, right = device.normal((m, k), case.dtype), device.normal((n, k), case.dtype).t()
    elif case.phase == "dgrad":
        left, right = device.normal((m, k), case.dtype), device.normal((k, n), case.dtype)
    else:
        left, right = device.normal((k, m), case.dtype).t(), device.normal((k, n), case.dtype)
    return Prepared(lambda: torch.mm(left, right))


def fp8_dtypes(device: MeasuredDevice) -> tuple[torch.dtype, torch.dtype] | None:
    """(inputs, gradients) in the device's own fp8 encoding; None where its matrix units have none.

    NVIDIA from compute capability 8.9; AMD MI300 (gfx94x) wants the ``fnuz`` encodings, MI350 (gfx95x) OCP's.
    """
    torch = import_torch()
    if device.kind == "cuda":
        enough = tuple(device.module.get_device_capability(device.device)) >= (8, 9)
        return (torch.float8_e4m3fn, torch.float8_e5m2) if enough else None
    if device.kind == "rocm":
        name = str(getattr(device.properties, "gcnArchName", ""))
        if name.startswith("gfx94"):
            return torch.float8_e4m3fnuz, torch.float8_e5m2fnuz
        return (torch.float8_e4m3fn, torch.float8_e5m2) if name.startswith("gfx95") else None
    return None


def _prepare_fp8(case: Case, device: MeasuredDevice, product: tuple[int, int, int]) -> Prepared:
    """``product``: rows, columns and summed length of this phase's own product."""
    torch = import_torch()
    found = fp8_dtypes(device)
    if found is None:
        raise NotImplementedError("fp8 is not supported by this device's matrix units")
    inputs, gradients = found
    rows, columns, summed = product
    left = device.normal((rows, summed)).to(inputs if case.phase == "forward" else gradients)
    # Column-major, as the kernel wants its second operand.
    right = device.normal((columns, summed)).to(inputs).t()
    scale = torch.ones((), dtype=torch.float32, device=device.device)
    fast = case.phase == "forward"

    def call() -> object:
        return torch._scaled_mm(left, right, scale, scale, out_dtype=torch.bfloat16, use_fast_accum=fast)

    return Prepared(call, {"implementation": "torch._scaled_mm, one scale a tensor", "fast_accumulation": fast})


MATMUL = OperatorKind(matmul_cases, prepare_matmul)
