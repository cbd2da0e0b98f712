"""A mixture of experts with dense dispatch: every shape is fixed, so that it can be traced."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class MixtureOfExperts(nn.Module):
    """Top-k routing into slots of fixed capacity by one-hot products (GShard), experts as one batched product."""

    def __init__(
        self,
        hidden_size: int = 128,
        ffn_size: int = 256,
        experts: int = 8,
        capacity: int = 64,
        batch: int = 4,
        length: int = 64,
    ) -> None:
        super().__init__()
        self.router = nn.Linear(hidden_size, experts, bias=False)
        self.up = nn.Parameter(torch.empty(experts, hidden_size, ffn_size))
        self.down = nn.Parameter(torch.empty(experts, ffn_size, hidden_size))
        self.experts, self.capacity, self.shape = experts, capacity, (batch, length, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.router(x).float().softmax(-1)
        gate, chosen = weights.max(-1)
        expert = functional.one_hot(chosen, self.experts)
        place = (expert.cumsum(1) * expert).sum(-1) - 1
        slot = (place[..., None] == torch.arange(self.capacity, device=x.device)).to(x.dtype)
        dispatch = torch.einsum("bse,bsc->bsec", expert.to(x.dtype), slot)
        inside = torch.einsum("bsec,bsh->ebch", dispatch, x)
        hidden = functional.silu(torch.einsum("ebch,ehf->ebcf", inside, self.up))
        outside = torch.einsum("ebcf,efh->ebch", hidden, self.down)
        combine = dispatch * gate[..., None, None].to(x.dtype)
        return x + torch.einsum("bsec,ebch->bsh", combine, outside)

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Hidden states of another layer."""
        return (torch.empty(self.shape, requires_grad=True),)
