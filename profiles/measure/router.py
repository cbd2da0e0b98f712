"""Times of the choice of experts: scores of all tokens, the best ``experts_per_token`` of them, and their counts.

    softmax_topk   p = softmax(logits), top-k of p, chosen weights divided by their sum     (Mixtral, Qwen3)
    sigmoid_topk   p = sigmoid(logits), top-k of p, chosen weights divided by their sum     (DeepSeek-V3, GLM-4.5)

Logits are fp32, as trainers keep them.  Forward also counts the tokens of each expert, which every dispatcher needs.
The product with the router's weights is a ``matmul`` of its own.
"""

from __future__ import annotations

from typing import Any

from profiles.measure.case import Case, Prepared
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import OperatorKind
from profiles.measure.pointwise_pass import pass_cases, prepare_pass


def prepare_router(case: Case, device: MeasuredDevice) -> Prepared:
    """``name`` is softmax_topk or sigmoid_topk; the experts that were counted take no gradient."""
    torch = import_torch()
    tokens, experts, chosen = (case.shape[name] for name in ("num_tokens", "num_experts", "experts_per_token"))
    logits = device.normal((tokens, experts), case.dtype)
    ones = torch.ones(tokens * chosen, dtype=torch.int32, device=device.device)
    counts = torch.zeros(experts, dtype=torch.int32, device=device.device)

    def choose(x: Any) -> Any:
        scores = torch.softmax(x, dim=-1) if case.name == "softmax_topk" else torch.sigmoid(x)
        best, index = torch.topk(scores, chosen, dim=-1)
        counts.zero_().index_add_(0, index.flatten(), ones)
        return best / best.sum(dim=-1, keepdim=True)

    return prepare_pass(case, device, choose, (logits,), {"implementation": "eager"})


ROUTER = OperatorKind(pass_cases("router", "num_experts", forward=3, backward=5), prepare_router, ("fp32",))
