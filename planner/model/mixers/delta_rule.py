"""Gated delta rule: gated DeltaNet (arXiv 2412.06464) and Kimi delta attention (KDA, arXiv 2510.26692).

A state ``S`` [key_dim, value_dim] a head is decayed, corrected by the delta rule and read once a token.  Kernels work
on chunks of ``C`` tokens (flash-linear-attention ``chunk_gated_delta_rule``, C = 64).  Forward FLOPs of one token and
head, with ``k`` key and ``v`` value features, as the kernel's matmuls run them (whole C x C blocks, no half)::

    K K^T                       2 C k
    inverse of (I + A)          C^2            triangular solve by blocks; prior, below 3 % of the whole
    W = T K, U = T V            2 C k + 2 C v
    V' = U - W S                2 k v
    S += K^T V'                 2 k v
    O = Q S + (Q K^T) V'        2 k v + 2 C k + 2 C v

Decays, norms of q and k and gates are point-wise inside the kernels.  Kept for the backward pass: q, k, v (repeated to
the value heads, as transformers' and Megatron-Core's modules do), the inverse A (C values a token and head), gates in
fp32.  W, U and the states between chunks are made again.

How it is cut: heads over tp (key and value heads both).  The state runs along the sequence, so that cp needs heads of
whole sequences (all-to-all); a ring does not apply.  Recomputed with the whole layer only: no back-end checkpoints the
mixer by itself.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.mixers.kinds import OtherMixer
from planner.model.mixers.parts import gated_norm, projection, short_convolution
from planner.model.operator import Operator

CHUNK = 64


class DeltaRuleSpec(OtherMixer):
    """Gated DeltaNet (one decay a head) or Kimi delta attention (one decay a key feature)."""

    kind: Literal["gated_delta", "kimi_delta"]
    num_value_heads: int = Field(gt=0)
    num_key_heads: int = Field(gt=0)
    key_head_dim: int = Field(gt=0)
    value_head_dim: int = Field(gt=0)
    conv_kernel: int = Field(default=4, gt=0, description="tokens under the short convolution")
    chunk_size: int = Field(default=CHUNK, gt=0, description="tokens of one chunk of the kernel")
    whole_gates: bool = Field(
        default=False,
        exclude_if=lambda on: not on,
        description="Kimi delta attention whose decay and gate have whole projections, not narrow pairs",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.num_value_heads % self.num_key_heads:
            raise ValueError(f"{self.num_key_heads} key heads must divide {self.num_value_heads} value heads")
        if self.kind == "kimi_delta" and (
            self.num_key_heads != self.num_value_heads or self.key_head_dim != self.value_head_dim
        ):
            raise ValueError("Kimi delta attention has as many and as wide key heads as value heads")
        return self

    @property
    def num_heads(self) -> int:
        """Heads that tensor parallelism splits."""
        return self.num_value_heads

    @property
    def num_kv_heads(self) -> int:
        """Heads of queries and keys, split as well."""
        return self.num_key_heads

    @property
    def head_dim(self) -> int:
        """Width of a query or key."""
        return self.key_head_dim

    @property
    def v_head_dim(self) -> int:
        """Width of a value."""
        return self.value_head_dim


def delta_rule_operators(mixer: DeltaRuleSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    keys = mixer.num_key_heads * mixer.key_head_dim
    values = mixer.num_value_heads * mixer.value_head_dim
    mixed = 2 * keys + values
    front = _kimi_projections if mixer.kind == "kimi_delta" else _gated_projections
    return (
        *front(mixer, hidden_size, input_from),
        short_convolution(mixed, mixer.conv_kernel, bias=False, saved_from="in_projection"),
        _recurrence(mixer, mixed, values),
        gated_norm(values, mixer.value_head_dim, replicated=True, saved_from="recurrence"),
        projection("output_projection", values, hidden_size, "row", saved_from="gated_norm"),
    )


def _gated_projections(mixer: DeltaRuleSpec, hidden_size: int, input_from: str) -> tuple[Operator, ...]:
    """Queries, keys, values, the output gate as wide as the values, decay and step size of each value head."""
    keys = mixer.num_key_heads * mixer.key_head_dim
    values = mixer.num_value_heads * mixer.value_head_dim
    out_features = 2 * keys + 2 * values + 2 * mixer.num_value_heads
    return (projection("in_projection", hidden_size, out_features, "column", saved_from=input_from),)


def _kimi_projections(mixer: DeltaRuleSpec, hidden_size: int, input_from: str) -> tuple[Operator, ...]:
    """Queries, keys, values and step sizes; decay and output gate each through a pair as narrow as a head."""
    width, rank = mixer.num_value_heads * mixer.value_head_dim, mixer.value_head_dim
    if mixer.whole_gates:
        features = 5 * width + mixer.num_value_heads
        return (projection("in_projection", hidden_size, features, "column", saved_from=input_from),)
    return (
        projection("in_projection", hidden_size, 3 * width + mixer.num_value_heads, "column", saved_from=input_from),
        projection("decay_down", hidden_size, rank, "replicated", keeps_input=False),
        projection("decay_up", rank, width, "column", saved_from="decay_down"),
        projection("gate_down", hidden_size, rank, "replicated", keeps_input=False),
        projection("gate_up", rank, width, "column", saved_from="gate_down"),
    )


def recurrence_flops(mixer: DeltaRuleSpec) -> float:
    """Forward FLOPs of the chunked recurrence for one token, all heads."""
    chunk, keys, values = mixer.chunk_size, mixer.key_head_dim, mixer.value_head_dim
    each = 2 * chunk * (3 * keys + 2 * values) + 6 * keys * values + chunk * chunk
    return float(mixer.num_value_heads * each)


def _recurrence(mixer: DeltaRuleSpec, mixed: int, values: int) -> Operator:
    heads = mixer.num_value_heads
    repeated = 2 * heads * mixer.key_head_dim + values
    decays = heads * mixer.key_head_dim if mixer.kind == "kimi_delta" else heads
    learned = heads + (decays if mixer.kind == "kimi_delta" else heads)
    return Operator(
        name="recurrence",
        op_class="chunk_scan",
        module="attention",
        shard="heads",
        parameters=learned,
        flops=recurrence_flops(mixer),
        kernel=mixer.kind,
        chunk=mixer.chunk_size,
        read_width=mixed + decays + heads,
        write_width=values,
        num_heads=heads,
        num_kv_heads=mixer.num_key_heads,
        qk_dim=mixer.key_head_dim,
        v_dim=mixer.value_head_dim,
        # Decays and step sizes are kept in fp32: two elements each.
        saved_width=repeated + heads * mixer.chunk_size + 2 * (decays + heads),
        saved_shard="heads",
        saved_from="convolution",
    )
