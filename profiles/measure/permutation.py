"""Times of the local permutation of tokens around the experts of a mixture, forward and backward.

    permute     index = argsort(expert of each copy); rows[i] = tokens[index[i] / experts_per_token]
    unpermute   tokens[t] = sum over its copies of probability * rows[copy]

``num_tokens`` = tokens before they are copied, ``experts_per_token`` = copies of each; rows = their product.
Run as trainers without a fused kernel run it: sort, gather, scale and scatter-add of torch.
"""

from __future__ import annotations

from typing import Any

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import DTYPE_BYTES, OperatorKind
from profiles.measure.pointwise_pass import prepare_pass
from profiles.observations.records import Phase, Scalar

EXPERTS = 128
"""Experts to which the copies are assigned at random; only the sort sees them."""


def permutation_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """Forward and backward of the direction that the shape names."""
    sizes = wanted.sizes
    elements = sizes["num_tokens"] * (1 + sizes["experts_per_token"]) * sizes["hidden_size"]
    phases: tuple[tuple[Phase, int], ...] = (("forward", 2), ("backward", 4))
    return [
        Case("permute", wanted.name, phase, dtype, dict(sizes), elements * tensors * DTYPE_BYTES[dtype], wanted.value)
        for phase, tensors in phases
    ]


def prepare_permutation(case: Case, device: MeasuredDevice) -> Prepared:
    """``name`` is permute or unpermute."""
    torch = import_torch()
    tokens, width, copies = (case.shape[name] for name in ("num_tokens", "hidden_size", "experts_per_token"))
    experts = torch.randint(EXPERTS, (tokens * copies,), device=device.device)
    detail: dict[str, Scalar] = {"implementation": "eager", "num_experts": EXPERTS}
    if case.name == "permute":

        def permute(x: Any) -> Any:
            return x.index_select(0, torch.argsort(experts) // copies)

        return prepare_pass(case, device, permute, (device.normal((tokens, width), case.dtype),), detail)
    owners = torch.argsort(experts) // copies
    rows = device.normal((tokens * copies, width), case.dtype)
    weights = device.normal((tokens * copies, 1), case.dtype)

    def unpermute(x: Any, probability: Any) -> Any:
        return x.new_zeros((tokens, width)).index_add(0, owners, x * probability)

    return prepare_pass(case, device, unpermute, (rows, weights), detail)


PERMUTE = OperatorKind(permutation_cases, prepare_permutation, ("bf16", "fp16", "fp32"))
