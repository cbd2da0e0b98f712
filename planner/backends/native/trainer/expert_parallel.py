"""Sends tokens to experts on other ranks: two all-to-alls of uneven sizes, with the counts sent first."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed._functional_collectives import all_to_all_single_autograd

from planner.backends.native.trainer.mixture import Mixture
from planner.backends.native.trainer.model import DecoderChunk


class RankExchange:
    """Exchange over one ep group; rank r holds experts r * E/ep .. (r + 1) * E/ep - 1.

    Sizes have to be known on the host, so each dispatch waits for the device once.
    """

    def __init__(self, group: dist.ProcessGroup, num_experts: int) -> None:
        self.group = group
        self.ep = dist.get_world_size(group)
        self.num_local_experts = num_experts // self.ep
        self._sent: list[int] = []
        self._received: list[int] = []
        self._to_expert_order = torch.empty(0, dtype=torch.long)

    def dispatch(self, tokens: Tensor, counts: Tensor) -> tuple[Tensor, list[int]]:
        """Rows sorted by global expert -> rows of the local experts, sorted by expert."""
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts, group=self.group)
        table = arriving.view(self.ep, self.num_local_experts)
        self._sent = counts.view(self.ep, -1).sum(dim=1).tolist()
        self._received = table.sum(dim=1).tolist()
        rows = _exchange(tokens, self._received, self._sent, self.group)
        expert = torch.arange(self.num_local_experts, device=counts.device).repeat(self.ep)
        self._to_expert_order = expert.repeat_interleave(table.flatten()).argsort(stable=True)
        return rows[self._to_expert_order], table.sum(dim=0).tolist()

    def combine(self, rows: Tensor) -> Tensor:
        """Results in expert order -> results in the order of the dispatched tokens, on the ranks they came from."""
        arrived = rows[self._to_expert_order.argsort()]
        return _exchange(arrived, self._sent, self._received, self.group)


def spread_experts(chunk: DecoderChunk, group: dist.ProcessGroup) -> None:
    """Connect every mixture of a chunk to its ep group."""
    for block in chunk.blocks().values():
        if isinstance(block.feed_forward, Mixture):
            block.feed_forward.exchange = RankExchange(group, block.feed_forward.num_experts)


def _exchange(rows: Tensor, receive: list[int], send: list[int], group: dist.ProcessGroup) -> Tensor:
    result: Tensor = all_to_all_single_autograd(rows.contiguous(), receive, send, group)
    # The functional collective hands out a lazily waited tensor; indexing it must see the data.
    return result
