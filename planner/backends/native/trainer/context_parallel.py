"""Attention over the whole sequence when each rank holds a part of it.

``ring`` plans run as an all-gather of keys and values (the head-tail split of ``positions.local_positions`` keeps
causal work equal); ``all_to_all`` plans trade tokens for heads (Ulysses, arXiv 2309.14509).  torch's own
``context_parallel`` has no CPU path (torch 2.13), so these two stand on the functional collectives.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed._functional_collectives import all_gather_single_autograd, all_to_all_single_autograd

from planner.backends.native.trainer.attention import AttentionCore, masked_attention, visible, whole_sequence_attention
from planner.backends.native.trainer.positions import local_positions
from planner.strategy.strategy import CpKind


def context_core(kind: CpKind, group: dist.ProcessGroup | None, sequence_length: int) -> AttentionCore:
    """The attention core of this rank."""
    if group is None:
        return whole_sequence_attention
    return GatheredCore(group, sequence_length) if kind == "ring" else HeadExchangeCore(group)


class GatheredCore:
    """All-gather keys and values, put them in sequence order, attend from this rank's two parts of the sequence.

    Part c of the queries only multiplies keys 0 .. c, so head and tail together cost the same on every rank.
    """

    def __init__(self, group: dist.ProcessGroup, sequence_length: int) -> None:
        self.group = group
        self.cp = dist.get_world_size(group)
        self.rank = dist.get_rank(group)
        self.part = sequence_length // (2 * self.cp)
        gathered = torch.cat(
            [local_positions(sequence_length, self.cp, rank, head_tail=True) for rank in range(self.cp)]
        )
        self.to_sequence = gathered.argsort()

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, window: int | None) -> Tensor:
        """Local tokens in, local tokens out."""
        keys, values = self._whole(keys), self._whole(values)
        head, tail = torch.split(queries, self.part, dim=1)
        first = self._attend(head, keys, values, self.rank, window)
        last = self._attend(tail, keys, values, 2 * self.cp - 1 - self.rank, window)
        return torch.cat((first, last), dim=1)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, part: int, window: int | None) -> Tensor:
        begin, end = part * self.part, (part + 1) * self.part
        first = 0 if window is None else max(0, begin - window + 1)
        positions = torch.arange(end, device=queries.device)
        mask = visible(positions[begin:], positions[first:], window)
        return masked_attention(queries, keys[:, first:end], values[:, first:end], mask)

    def _whole(self, local: Tensor) -> Tensor:
        gathered: Tensor = all_gather_single_autograd(local.contiguous(), 1, self.group)
        order = self.to_sequence.to(local.device)
        return gathered.index_select(1, order)


class HeadExchangeCore:
    """All tokens of 1/cp of the heads, attend, and back."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.cp = dist.get_world_size(group)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, window: int | None) -> Tensor:
        """Local tokens in, local tokens out."""
        whole = (self._to_heads(queries), self._to_heads(keys), self._to_heads(values))
        return self._to_tokens(whole_sequence_attention(*whole, window))

    def _to_heads(self, local: Tensor) -> Tensor:
        """[batch, tokens / cp, heads, f] -> [batch, tokens, heads / cp, f]."""
        send = torch.unflatten(local, 2, (self.cp, -1)).movedim(2, 0)
        return self._exchange(send).movedim(0, 1).flatten(1, 2)

    def _to_tokens(self, whole: Tensor) -> Tensor:
        """[batch, tokens, heads / cp, f] -> [batch, tokens / cp, heads, f]."""
        send = torch.unflatten(whole, 1, (self.cp, -1)).movedim(1, 0)
        return self._exchange(send).movedim(0, 2).flatten(2, 3)

    def _exchange(self, send: Tensor) -> Tensor:
        flat = all_to_all_single_autograd(send.contiguous(), None, None, self.group)
        return flat.view(send.shape)
