"""Times of fused attention, forward and backward.

``torch.nn.functional.scaled_dot_product_attention`` on [batch, heads, tokens, head size], grouped-query where there
are fewer key heads.  The backward pass reuses one forward pass; which kernel torch chose is part of the detail.
"""

from __future__ import annotations

from typing import Any

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import DTYPE_BYTES, OperatorKind
from profiles.observations.records import Phase, Scalar

_BACKENDS = {"MATH": "math", "FLASH_ATTENTION": "flash", "EFFICIENT_ATTENTION": "memory-efficient"}


def attention_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """Forward and backward of one shape; fp8 is left out, torch has no fp8 attention."""
    if dtype == "fp8":
        return []
    sizes = wanted.sizes
    width = sizes.get("value_head_dim", sizes["head_dim"]) + sizes["head_dim"]
    heads = sizes["num_heads"] * sizes["query_length"] + sizes["num_kv_heads"] * sizes["key_length"]
    tensors = sizes["batch_size"] * heads * width * DTYPE_BYTES[dtype]
    phases: tuple[tuple[Phase, int], ...] = (("forward", 1), ("backward", 2))
    return [
        Case("attention", "sdpa", phase, dtype, dict(sizes), tensors * factor, wanted.value, wanted.causal)
        for phase, factor in phases
    ]


def prepare_attention(case: Case, device: MeasuredDevice) -> Prepared:
    """Queries, keys and values; for the backward pass also the output and its gradient."""
    torch = import_torch()
    attend = torch.nn.functional.scaled_dot_product_attention
    sizes = case.shape
    query = _heads(device, case, "num_heads", "query_length", sizes["head_dim"])
    key = _heads(device, case, "num_kv_heads", "key_length", sizes["head_dim"])
    value = _heads(device, case, "num_kv_heads", "key_length", sizes.get("value_head_dim", sizes["head_dim"]))
    switches: dict[str, Any] = {"is_causal": bool(case.causal), "enable_gqa": key.shape[1] != query.shape[1]}
    detail: dict[str, Scalar] = {"implementation": _chosen(query, key, value, switches)}

    def forward() -> Any:
        with torch.no_grad():
            return attend(query, key, value, **switches)

    if case.phase == "forward":
        return Prepared(forward, detail)
    inputs = tuple(each.requires_grad_() for each in (query, key, value))
    output = attend(*inputs, **switches)
    gradient = device.normal(tuple(output.shape), case.dtype)
    return Prepared(lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True), detail)


def _heads(device: MeasuredDevice, case: Case, heads: str, length: str, width: int) -> Any:
    return device.normal((case.shape["batch_size"], case.shape[heads], case.shape[length], width), case.dtype)


def _chosen(query: Any, key: Any, value: Any, switches: dict[str, Any]) -> str:
    """Which kernel torch will run; "unknown" where this version does not tell."""
    torch = import_torch()
    choose = getattr(torch, "_fused_sdp_choice", None)
    if choose is None:
        return "torch sdpa, kernel unknown"
    try:
        number = int(choose(query, key, value, None, 0.0, switches["is_causal"], enable_gqa=switches["enable_gqa"]))
        name = str(torch.nn.attention.SDPBackend(number).name)
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return "torch sdpa, kernel unknown"
    return f"torch sdpa, {_BACKENDS.get(name, name.replace('_', ' ').casefold())}"


ATTENTION = OperatorKind(attention_cases, prepare_attention)
