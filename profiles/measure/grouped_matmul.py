"""Times of all experts of one device, with balanced and with skewed routing.

    forward  y[r, n]   = x[r, k]  W[g]      W: [num_groups, k, n], r over the rows of all groups
    dgrad    dx[r, k]  = dy[r, n] W[g]^T
    wgrad    dW[g]     = x_g^T dy_g

``shape``: num_groups, m (mean rows of one group), n, k of the forward.  ``routing``: balanced, or power_law with
``rows_g`` proportional to ``rank^-POWER``.
``torch.nn.functional.grouped_mm`` where torch has it, else one product a group; the detail says which.  fp8:
``torch._scaled_grouped_mm`` with one scale a row, e4m3 on both sides, bf16 output; quantising is not part of the time.
Its weight gradient sums over the rows of a group, of which the kernel takes whole sixteens only.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import DTYPE_BYTES, OperatorKind
from profiles.measure.matmul import PHASES, fp8_dtypes
from profiles.observations.records import Scalar

POWER = 1.0
SKEWED_AFTER = 2
"""Rounds of a grid by which skewed routing comes later: first every number of rows, balanced."""
SCALED_ROWS = 16
"""Rows of a group in the fp8 weight gradient are a multiple of this: 16 bytes, what the kernel's loads take."""


def grouped_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """Three phases with two kinds of routing."""
    groups, m, n, k = (wanted.sizes[name] for name in ("num_groups", "m", "n", "k"))
    elements = groups * (m * n + m * k + n * k)
    return [
        Case(
            "grouped_matmul",
            "experts",
            phase,
            dtype,
            {"num_groups": groups, "m": m, "n": n, "k": k},
            elements * DTYPE_BYTES[dtype],
            wanted.value + (SKEWED_AFTER if routing != "balanced" else 0),
            detail=_routing_detail(routing, groups, m),
        )
        for routing in ("balanced", "power_law")
        for phase, _ in PHASES
        if dtype != "fp8" or phase != "wgrad" or (routing == "balanced" and m % SCALED_ROWS == 0)
    ]


def rows_of_groups(routing: str, num_groups: int, mean_rows: int) -> list[int]:
    """Rows of each group; they sum to ``num_groups * mean_rows`` and every group has at least one."""
    if routing == "balanced":
        return [mean_rows] * num_groups
    total = num_groups * mean_rows
    weights = [(rank + 1) ** -POWER for rank in range(num_groups)]
    spare = total - num_groups
    bounds = [round(spare * part / sum(weights)) for part in accumulate(weights)]
    return [1 + high - low for low, high in zip([0, *bounds], bounds, strict=False)]


def prepare_grouped(case: Case, device: MeasuredDevice) -> Prepared:
    """Rows sorted by group, their ends, and the weights of all groups."""
    torch = import_torch()
    groups, m, n, k = (case.shape[name] for name in ("num_groups", "m", "n", "k"))
    rows = rows_of_groups(str(case.detail["routing"]), groups, m)
    ends = list(accumulate(rows))
    if case.dtype == "fp8":
        return _prepare_fp8(case, device, ends)
    multiply, implementation = _multiply(torch, device, ends)
    weights = device.normal((groups, k, n), case.dtype)
    if case.phase == "forward":
        left, right = device.normal((ends[-1], k), case.dtype), weights
    elif case.phase == "dgrad":
        left, right = device.normal((ends[-1], n), case.dtype), weights.transpose(-2, -1)
    else:
        left, right = device.normal((ends[-1], k), case.dtype).t(), device.normal((ends[-1], n), case.dtype)
    return Prepared(lambda: multiply(left, right), {"implementation": implementation})


def _routing_detail(routing: str, groups: int, mean_rows: int) -> dict[str, Scalar]:
    if routing == "balanced":
        return {"routing": routing}
    return {"routing": routing, "power": POWER, "largest_group_rows": rows_of_groups(routing, groups, mean_rows)[0]}


def _multiply(torch: Any, device: MeasuredDevice, ends: list[int]) -> tuple[Callable[[Any, Any], object], str]:
    grouped = getattr(torch.nn.functional, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)
    if grouped is not None:
        offsets = torch.tensor(ends, dtype=torch.int32, device=device.device)
        return lambda left, right: grouped(left, right, offs=offsets), "torch grouped_mm"
    spans = list(zip([0, *ends], ends, strict=False))

    def loop(left: Any, right: Any) -> object:
        # The weight gradient sums over the rows, so there the groups are slices of the summed axis.
        if right.dim() == 2:
            return [left[:, low:high] @ right[low:high] for low, high in spans]
        return [left[low:high] @ right[group] for group, (low, high) in enumerate(spans)]

    return loop, "one product a group"


def _prepare_fp8(case: Case, device: MeasuredDevice, ends: list[int]) -> Prepared:
    """The second operand is column-major and the first row-major, as the kernel wants them."""
    torch = import_torch()
    found = fp8_dtypes(device)
    if found is None:
        raise NotImplementedError("fp8 is not supported by this device's matrix units")
    groups, n, k = (case.shape[name] for name in ("num_groups", "n", "k"))
    rows = ends[-1]

    def scales(*sizes: int) -> Any:
        return torch.ones(sizes, dtype=torch.float32, device=device.device)

    def numbers(*sizes: int) -> Any:
        return device.normal(sizes).to(found[0])

    if case.phase == "wgrad":
        left, right = numbers(k, rows), numbers(n, rows).t()
        left_scale, right_scale = scales(k * groups), scales(n * groups)
    else:
        columns, summed = (n, k) if case.phase == "forward" else (k, n)
        left, right = numbers(rows, summed), numbers(groups, columns, summed).transpose(-2, -1)
        left_scale, right_scale = scales(rows), scales(groups, columns)
    offsets = torch.tensor(ends, dtype=torch.int32, device=device.device)
    fast = case.phase == "forward"

    def call() -> object:
        return torch._scaled_grouped_mm(
            left, right, left_scale, right_scale, offs=offsets, out_dtype=torch.bfloat16, use_fast_accum=fast
        )

    return Prepared(call, {"implementation": "torch._scaled_grouped_mm, one scale a row", "fast_accumulation": fast})


GROUPED_MATMUL = OperatorKind(grouped_cases, prepare_grouped)
