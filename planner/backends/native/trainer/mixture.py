"""A mixture of experts: router, routed experts, shared experts.

Dropless: every token reaches all of its ``top_k`` experts.  Scores are fp32; the chosen ones are normalised to sum 1
(as in mixtral, qwen3_moe, deepseek_v3).  There is no load-balancing loss.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn

from planner.backends.native.trainer.branch_input import Again, PlainEntry, kept_input
from planner.backends.native.trainer.feed_forward import ACTIVATIONS, FeedForward
from planner.backends.native.trainer.recompute import KEEP_ALL, RecomputeChoice
from planner.model.spec import MoeSpec


class ExpertExchange(Protocol):
    """Brings tokens, already sorted by expert, to the ranks that hold the experts, and back."""

    num_local_experts: int

    def dispatch(self, tokens: Tensor, counts: Tensor) -> tuple[Tensor, list[int]]:
        """Rows sorted by global expert (``counts`` each) -> rows sorted by local expert, and how many each gets."""
        ...

    def combine(self, rows: Tensor) -> Tensor:
        """Inverse of the last ``dispatch``: results in the order of its ``tokens``."""
        ...


class LocalExchange:
    """Every expert is on this rank: nothing moves."""

    def __init__(self, num_experts: int) -> None:
        self.num_local_experts = num_experts

    def dispatch(self, tokens: Tensor, counts: Tensor) -> tuple[Tensor, list[int]]:
        """Rows as they are."""
        return tokens, counts.tolist()

    def combine(self, rows: Tensor) -> Tensor:
        """Rows as they are."""
        return rows


class Experts(nn.Module):
    """The routed experts that this rank holds, weights stacked along the first dim.

    ``first_expert`` is the global index of row 0; parameters are initialised expert by expert, so that the values do
    not depend on how experts are spread.
    """

    def __init__(self, moe: MoeSpec, hidden_size: int, activation: str, *, ep: int = 1, ep_rank: int = 0) -> None:
        super().__init__()
        count, width = moe.num_experts // ep, moe.expert_intermediate_size
        self.first_expert = ep_rank * count
        self.up = nn.Parameter(torch.empty(count, width, hidden_size))
        self.gate = nn.Parameter(torch.empty(count, width, hidden_size)) if moe.gated else None
        self.down = nn.Parameter(torch.empty(count, hidden_size, width))
        self.activation = ACTIVATIONS[activation]
        self.recompute: RecomputeChoice = KEEP_ALL

    def forward(self, rows: Tensor, counts: list[int]) -> Tensor:
        """Rows sorted by local expert, ``counts`` each -> results in the same order."""
        results = []
        for expert, part in enumerate(torch.split(rows, counts)):
            up = (part @ self.up[expert].T,)
            gate = () if self.gate is None else (part @ self.gate[expert].T,)
            results.append(self.recompute.run("activation", partial(self._finish, expert), *up, *gate))
        return torch.cat(results)

    def _finish(self, expert: int, up: Tensor, gate: Tensor | None = None) -> Tensor:
        inner = self.activation(up) if gate is None else self.activation(gate) * up
        return inner @ self.down[expert].T


class Mixture(nn.Module):
    """Router + routed experts (+ shared experts) over the tokens that this rank holds."""

    def __init__(self, moe: MoeSpec, hidden_size: int, activation: str, *, ep: int = 1, ep_rank: int = 0) -> None:
        super().__init__()
        self.num_experts = moe.num_experts
        self.top_k = moe.top_k
        self.sigmoid = moe.score_function == "sigmoid"
        self.router = nn.Linear(hidden_size, moe.num_experts, bias=moe.router_bias)
        self.experts = Experts(moe, hidden_size, activation, ep=ep, ep_rank=ep_rank)
        self.shared: FeedForward | None = None
        self.shared_gate: nn.Linear | None = None
        if moe.shared_intermediate_size:
            width = moe.shared_intermediate_size
            self.shared = FeedForward(
                hidden_size, width, gated=moe.gated, bias=False, activation=activation, region="moe"
            )
            self.shared_gate = nn.Linear(hidden_size, 1, bias=False) if moe.shared_gate else None
        self.exchange: ExpertExchange = LocalExchange(moe.num_experts)
        self.recompute: RecomputeChoice = KEEP_ALL

    def forward(self, hidden: Tensor, again: Again | None = None) -> Tensor:
        """[batch, tokens, hidden] -> the same; ``again`` makes ``hidden`` once more (see ``kept_input``)."""
        tokens = hidden.flatten(0, 1)
        with kept_input(PlainEntry(), hidden, again, checkpointed=self.recompute.covers("moe")) as kept:
            logits = self.router(kept)
        weights, chosen = self._route(logits)
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=self.num_experts)
        source = order // self.top_k
        rows, local_counts = self.exchange.dispatch(tokens[source], counts)
        results = self.exchange.combine(self.experts(rows, local_counts))
        weighted = results * weights.flatten()[order, None].to(results.dtype)
        routed = torch.zeros_like(tokens).index_add(0, source, weighted).view_as(hidden)
        return routed if self.shared is None else routed + self._shared(hidden, again, self.shared)

    def _route(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and expert indices, each [tokens, top_k]."""
        logits = logits.flatten(0, 1).float()
        scores = logits.sigmoid() if self.sigmoid else logits.softmax(dim=-1)
        weights, chosen = scores.topk(self.top_k, dim=-1)
        return weights / weights.sum(dim=-1, keepdim=True), chosen

    def _shared(self, hidden: Tensor, again: Again | None, experts: FeedForward) -> Tensor:
        out: Tensor = experts(hidden, again)
        if self.shared_gate is None:
            return out
        with kept_input(PlainEntry(), hidden, again, checkpointed=self.recompute.covers("moe")) as kept:
            gate: Tensor = self.shared_gate(kept)
        return out * gate.sigmoid()
