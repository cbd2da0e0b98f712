"""A chunk of a decoder as a torch module: built from a ``ModelSpec``, named the same on every layout.

Parameter names are those of the whole model (``layers.17.attention.query.weight``) wherever the chunk starts, so that
initial values follow from the name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from planner.backends.native.trainer.attention import Attention, AttentionCore, build_norm
from planner.backends.native.trainer.branch_input import Again
from planner.backends.native.trainer.feed_forward import FeedForward
from planner.backends.native.trainer.mixture import Experts, Mixture
from planner.backends.native.trainer.positions import rotation
from planner.backends.native.trainer.recompute import KEEP_ALL, RecomputeChoice
from planner.model.spec import AttentionSpec, LayerSpec, ModelSpec
from planner.plan.plan import ChunkPlan


class Block(nn.Module):
    """One transformer layer, norms before or after its branches as the spec places them."""

    def __init__(self, model: ModelSpec, spec: LayerSpec, *, ep: int, ep_rank: int) -> None:
        super().__init__()
        hidden, activation, epsilon = model.hidden_size, model.activation_function, model.norm_epsilon
        before = spec.norm_placement == "pre"
        shared_norm = spec.num_norms == 1
        self.parallel_residual = spec.parallel_residual
        self.post_residual = spec.norm_placement == "post_residual"
        self.attention_norm = build_norm(spec.norm, hidden, epsilon) if before else None
        self.feed_forward_norm = build_norm(spec.norm, hidden, epsilon) if before and not shared_norm else None
        after = not before or spec.num_norms == 4
        self.attention_post_norm = build_norm(spec.norm, hidden, epsilon) if after else None
        self.feed_forward_post_norm = build_norm(spec.norm, hidden, epsilon) if after else None
        if not isinstance(spec.attention, AttentionSpec):
            raise ValueError(f"the native trainer has no token mixer of kind {spec.attention.kind}")
        self.attention = Attention(spec.attention, hidden, spec.norm, epsilon)
        self.feed_forward: FeedForward | Mixture
        if spec.moe is not None:
            self.feed_forward = Mixture(spec.moe, hidden, activation, ep=ep, ep_rank=ep_rank)
        else:
            mlp = spec.mlp
            if mlp is None:
                raise ValueError("a layer has neither an MLP nor experts")
            self.feed_forward = FeedForward(
                hidden, mlp.intermediate_size, gated=mlp.gated, bias=mlp.bias, activation=activation
            )
        self.recompute: RecomputeChoice = KEEP_ALL

    def set_recompute(self, choice: RecomputeChoice) -> None:
        """Say what runs again in the backward pass."""
        self.recompute = choice
        for module in self.modules():
            if isinstance(module, Attention | FeedForward | Mixture | Experts):
                module.recompute = choice

    def forward(self, hidden: Tensor) -> Tensor:
        """[batch, tokens, hidden] -> the same."""
        return self.recompute.run_block(self._layer, hidden)

    def _layer(self, hidden: Tensor) -> Tensor:
        normed, again = self._normed(self.attention_norm, hidden)
        attended: Tensor = self.attention(normed, again)
        if self.parallel_residual:
            own = self.feed_forward_norm
            fed = self._feed(None, normed, again) if own is None else self._feed(own, hidden)
            return hidden + attended + fed
        hidden = self._join(hidden, attended, self.attention_post_norm)
        fed = self._feed(self.feed_forward_norm, hidden)
        return self._join(hidden, fed, self.feed_forward_post_norm)

    def _normed(self, norm: nn.Module | None, hidden: Tensor) -> tuple[Tensor, Again | None]:
        """Output of a norm, and how to make it once more where norms are recomputed."""
        if norm is None or "norm" not in self.recompute.modules:
            return _maybe(norm, hidden), None
        return _maybe(norm, hidden), partial(norm, hidden.detach())

    def _join(self, hidden: Tensor, branch: Tensor, norm: nn.Module | None) -> Tensor:
        return _maybe(norm, hidden + branch) if self.post_residual else hidden + _maybe(norm, branch)

    def _feed(self, norm: nn.Module | None, hidden: Tensor, again: Again | None = None) -> Tensor:
        """The MLP or mixture, after its norm."""
        module = "moe" if isinstance(self.feed_forward, Mixture) else "mlp"
        if module not in self.recompute.modules:
            normed, own = self._normed(norm, hidden)
            out: Tensor = self.feed_forward(normed, own or again)
            return out
        if "norm" in self.recompute.modules:
            return self.recompute.run(module, lambda stream: self.feed_forward(_maybe(norm, stream)), hidden)
        return self.recompute.run(module, self.feed_forward, _maybe(norm, hidden))


class DecoderChunk(nn.Module):
    """Consecutive layers of the model, with the embedding and the head where the plan puts them.

    ``rows_multiple``: tables get rows of zeros up to a multiple of it, so that tensor parallelism can split them; the
    loss ignores the added logits.
    """

    def __init__(
        self, model: ModelSpec, chunk: ChunkPlan, *, ep: int = 1, ep_rank: int = 0, rows_multiple: int = 1
    ) -> None:
        super().__init__()
        hidden, epsilon = model.hidden_size, model.norm_epsilon
        norm, last_norm = model.layer_kinds[0].norm, model.layer_kinds[-1].norm
        vocab = round_up(model.vocab_size, rows_multiple)
        rows = round_up(model.learned_positions, rows_multiple)
        first, kinds = chunk.has_embedding, model.layer_kind_sequence()
        self.model = model
        self.embedding = nn.Embedding(vocab, hidden) if first else None
        self.position_embedding = nn.Embedding(rows, hidden) if first and rows else None
        self.embedding_norm = build_norm(norm, hidden, epsilon) if first and model.embedding_norm else None
        self.layers = nn.ModuleDict(
            {
                str(index): Block(model, model.layer_kinds[kinds[index]], ep=ep, ep_rank=ep_rank)
                for index in range(chunk.first_layer, chunk.first_layer + chunk.num_layers)
            }
        )
        self.final_norm = build_norm(last_norm, hidden, epsilon) if chunk.has_head and model.final_norm else None
        self.head = nn.Linear(hidden, vocab, bias=model.head_bias) if chunk.has_head else None
        self.positions: Tensor | None = None
        self.tie()

    def tie(self) -> None:
        """Make head and embedding one parameter, where the model ties them and the chunk has both."""
        if self.model.tie_embeddings and self.head is not None and self.embedding is not None:
            self.head.weight = self.embedding.weight

    def blocks(self) -> Mapping[int, Block]:
        """Layers by their index in the whole model."""
        return {int(index): cast(Block, block) for index, block in self.layers.items()}

    def place(self, positions: Tensor, core: AttentionCore) -> None:
        """Say which tokens this rank holds and how it attends."""
        self.positions = positions
        tables = {}
        for block in self.blocks().values():
            attention = block.attention
            attention.core = core
            if self.model.position == "rope":
                width = attention.rotated_width
                if width not in tables:
                    tables[width] = rotation(positions, width, self.model.rotary_base)
                attention.rotation = tables[width]

    def forward(self, inputs: Tensor) -> Tensor:
        """Token ids [batch, tokens] on the first chunk, else hidden states -> hidden states, or logits on the last."""
        hidden = inputs if self.embedding is None else self._embed(inputs, self.embedding)
        for block in self.layers.values():
            hidden = block(hidden)
        hidden = _maybe(self.final_norm, hidden)
        return _maybe(self.head, hidden)

    def _embed(self, tokens: Tensor, embedding: nn.Module) -> Tensor:
        hidden: Tensor = embedding(tokens)
        if self.position_embedding is not None and self.positions is not None:
            hidden = hidden + self.position_embedding(self.positions[None, :])
        return _maybe(self.embedding_norm, hidden)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` that is not below ``value``."""
    return -(-value // multiple) * multiple


def whole_model(model: ModelSpec) -> ChunkPlan:
    """The chunk that holds everything."""
    return ChunkPlan(chunk=0, first_layer=0, num_layers=model.num_layers, has_embedding=True, has_head=True)


def _maybe(module: nn.Module | None, hidden: Tensor) -> Tensor:
    return hidden if module is None else cast(Tensor, module(hidden))


def count_parameters(module: nn.Module) -> int:
    """Learned scalars, a shared parameter counted once."""
    return sum(parameter.numel() for parameter in module.parameters())


def on_meta(model: ModelSpec, chunk: ChunkPlan, **sizes: int) -> DecoderChunk:
    """Build a chunk without memory for its parameters."""
    with torch.device("meta"):
        return DecoderChunk(model, chunk, **sizes)
