"""The attention of one layer: projections, norms of queries and keys, rotation, and an exchangeable core.

The core sees this rank's heads and tokens; context parallelism replaces it (``context_parallel``).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from planner.backends.native.trainer.branch_input import Again, Entry, PlainEntry, kept_input
from planner.backends.native.trainer.positions import Rotation
from planner.backends.native.trainer.recompute import KEEP_ALL, RecomputeChoice
from planner.model.spec import AttentionSpec, NormKind


class AttentionCore(Protocol):
    """Attention over [batch, tokens, heads, features] tensors; keys and values may have fewer heads."""

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, window: int | None) -> Tensor:
        """Return [batch, tokens, heads, value features]."""
        ...


def masked_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Scaled dot-product attention; ``mask`` [queries, keys] is True where a query sees a key, None = causal.

    In and out are [batch, tokens, heads, features].
    """
    out = functional.scaled_dot_product_attention(
        queries.transpose(1, 2),
        keys.transpose(1, 2),
        values.transpose(1, 2),
        attn_mask=mask,
        is_causal=mask is None,
        enable_gqa=queries.shape[2] != keys.shape[2],
    )
    return out.transpose(1, 2)


def visible(query_positions: Tensor, key_positions: Tensor, window: int | None) -> Tensor:
    """Causal mask, True = seen; with a window a query sees itself and the ``window - 1`` tokens before it."""
    distance = query_positions[:, None] - key_positions[None, :]
    mask = distance >= 0
    return mask if window is None else mask & (distance < window)


def whole_sequence_attention(queries: Tensor, keys: Tensor, values: Tensor, window: int | None) -> Tensor:
    """Core of a rank that holds every token of the sequence."""
    tokens = queries.shape[1]
    if window is None or window >= tokens:
        return masked_attention(queries, keys, values, None)
    positions = torch.arange(tokens, device=queries.device)
    return masked_attention(queries, keys, values, visible(positions, positions, window))


class Attention(nn.Module):
    """Grouped-query self-attention of one layer."""

    def __init__(self, spec: AttentionSpec, hidden_size: int, norm: NormKind, epsilon: float) -> None:
        super().__init__()
        query_width = spec.num_heads * spec.head_dim
        self.head_dim = spec.head_dim
        self.v_head_dim = spec.v_head_dim
        self.rotated_width = spec.qk_rope_head_dim or spec.head_dim
        self.window = spec.sliding_window
        self.query = nn.Linear(hidden_size, query_width, bias=spec.qkv_bias)
        self.key = nn.Linear(hidden_size, spec.num_kv_heads * spec.head_dim, bias=spec.qkv_bias)
        self.value = nn.Linear(hidden_size, spec.num_kv_heads * spec.v_head_dim, bias=spec.qkv_bias)
        self.output = nn.Linear(spec.num_heads * spec.v_head_dim, hidden_size, bias=spec.output_bias)
        self.full_width_norm = spec.qk_norm == "full_width"
        self.query_norm: nn.Module | None = None
        self.key_norm: nn.Module | None = None
        if spec.qk_norm != "none":
            kind: NormKind = "layer" if spec.qk_norm_bias else ("rms" if norm == "rms" else "layer_no_bias")
            per_head = spec.qk_norm == "per_head"
            self.query_norm = build_norm(kind, spec.head_dim if per_head else query_width, epsilon)
            self.key_norm = build_norm(kind, spec.head_dim * (1 if per_head else spec.num_kv_heads), epsilon)
        self.rotation: Rotation | None = None
        self.entry: Entry = PlainEntry()
        self.core: AttentionCore = whole_sequence_attention
        self.recompute: RecomputeChoice = KEEP_ALL

    def forward(self, hidden: Tensor, again: Again | None = None) -> Tensor:
        """[batch, tokens, hidden] -> the same; ``again`` makes ``hidden`` once more (see ``kept_input``)."""
        with kept_input(self.entry, hidden, again, checkpointed=self.recompute.whole_block) as whole:
            projected = self.query(whole), self.key(whole), self.value(whole)
        queries = self._heads(projected[0], self.head_dim, self.query_norm)
        keys = self._heads(projected[1], self.head_dim, self.key_norm)
        values = self._heads(projected[2], self.v_head_dim, None)
        if self.rotation is not None:
            queries, keys = self.rotation.apply(queries), self.rotation.apply(keys)
        attended = self.recompute.run("attention_core", self._attend, queries, keys, values)
        out: Tensor = self.output(attended.flatten(2))
        return out

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return self.core(queries, keys, values, self.window)

    def _heads(self, projected: Tensor, width: int, norm: nn.Module | None) -> Tensor:
        if norm is not None and self.full_width_norm:
            projected = norm(projected)
        heads = torch.unflatten(projected, -1, (-1, width))
        if norm is not None and not self.full_width_norm:
            heads = norm(heads)
        return heads


def build_norm(kind: NormKind, width: int, epsilon: float) -> nn.Module:
    """RMS norm, or layer norm with the affine parts that the kind has."""
    if kind == "rms":
        return nn.RMSNorm(width, eps=epsilon)
    return nn.LayerNorm(width, eps=epsilon, elementwise_affine=kind != "none_affine", bias=kind == "layer")
