"""The loss of a micro-batch: mean cross entropy, on logits whose vocabulary may be split over tp.

With a split vocabulary no rank ever holds all logits: three small all-reduces a token replace the gather
(maximum, sum of exponentials, logit of the target), as in Megatron-LM (arXiv 1909.08053, section 3).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional


class _SplitCrossEntropy(torch.autograd.Function):
    """Cross entropy of rows whose columns ``first .. first + width`` are on this rank."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, first: int, group: dist.ProcessGroup) -> Tensor:
        """[rows, local columns], [rows] -> loss of each row."""
        maximum = logits.amax(dim=-1)
        dist.all_reduce(maximum, dist.ReduceOp.MAX, group)
        shifted = logits - maximum[:, None]
        inside = (targets >= first) & (targets < first + logits.shape[1])
        columns = torch.where(inside, targets - first, 0)
        picked = shifted.gather(1, columns[:, None]).squeeze(1) * inside
        exponentials = shifted.exp_()
        total = exponentials.sum(dim=-1)
        both = torch.stack((picked, total))
        dist.all_reduce(both, dist.ReduceOp.SUM, group)
        picked, total = both
        ctx.save_for_backward(exponentials.div_(total[:, None]), columns, inside)
        rows: Tensor = total.log() - picked
        return rows

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Softmax minus one at the target, times the incoming gradient."""
        probabilities, columns, inside = ctx.saved_tensors
        result = probabilities.clone()
        result.scatter_add_(1, columns[:, None], -inside[:, None].to(result.dtype))
        return result.mul_(gradients[0][:, None]), None, None, None


class TokenLoss:
    """Mean next-token cross entropy of one micro-batch, divided by ``num_microbatches``."""

    def __init__(self, vocab_size: int, num_microbatches: int, tensor_group: dist.ProcessGroup | None = None) -> None:
        self.vocab_size = vocab_size
        self.num_microbatches = num_microbatches
        self.tensor_group = tensor_group

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """[batch, tokens, local vocabulary], [batch, tokens] -> scalar."""
        rows, wanted = logits.float().flatten(0, 1), targets.flatten()
        if self.tensor_group is None:
            loss = functional.cross_entropy(rows[:, : self.vocab_size], wanted)
        else:
            first = dist.get_rank(self.tensor_group) * rows.shape[1]
            padding = torch.arange(rows.shape[1], device=rows.device) >= self.vocab_size - first
            rows = rows.masked_fill(padding[None, :], float("-inf"))
            per_row: Tensor = _SplitCrossEntropy.apply(rows, wanted, first, self.tensor_group)  # type: ignore[no-untyped-call]
            loss = per_row.mean()
        return loss / self.num_microbatches
