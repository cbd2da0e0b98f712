"""Attention made of experts (mixture of attention heads, arXiv 2210.05144; JetMoE): experts make queries and outputs.

A router chooses ``top_k`` experts a token; each makes ``num_kv_heads`` queries and projects what they saw back.  Keys
and values are shared by all experts.  FLOPs: those of attention with ``top_k * num_kv_heads`` heads, and of the
projections of ``top_k`` experts.

How it is cut: the heads of every expert over tp.  Experts stay on every rank: no back-end here exchanges tokens for
attention.  Recomputed with the whole layer only.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import OtherMixer
from planner.model.mixers.parts import projection
from planner.model.operator import Operator


class ExpertAttentionSpec(OtherMixer):
    """Attention of one layer kind whose queries and outputs come from experts."""

    kind: Literal["expert_attention"] = "expert_attention"
    num_kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    num_experts: int = Field(gt=0)
    top_k: int = Field(gt=0)

    @property
    def num_heads(self) -> int:
        """Heads of one expert, which tensor parallelism splits."""
        return self.num_kv_heads

    @property
    def v_head_dim(self) -> int:
        """As wide as a query."""
        return self.head_dim


def expert_attention_operators(
    mixer: ExpertAttentionSpec, hidden_size: int, *, input_from: str
) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    width, chosen = mixer.num_kv_heads * mixer.head_dim, mixer.top_k
    weights = mixer.num_experts * hidden_size * width
    wide = chosen * width
    queries = Operator(
        name="expert_queries",
        op_class="matmul",
        module="attention",
        shard="column",
        parameters=weights,
        in_features=hidden_size,
        out_features=width,
        tokens_per_token=float(chosen),
        read_width=chosen * hidden_size,
        write_width=wide,
        num_experts=mixer.num_experts,
        saved_width=hidden_size,
        saved_shard="sequence",
        saved_from=input_from,
    )
    outputs = Operator(
        name="expert_outputs",
        op_class="matmul",
        module="attention",
        shard="row",
        parameters=weights + hidden_size,
        replicated_parameters=hidden_size,
        in_features=width,
        out_features=hidden_size,
        tokens_per_token=float(chosen),
        read_width=wide,
        write_width=chosen * hidden_size,
        num_experts=mixer.num_experts,
        saved_width=wide,
        saved_shard="heads",
        saved_from="attention_core",
    )
    rotated = wide + width
    return (
        projection("attention_router", hidden_size, mixer.num_experts, "replicated", keeps_input=False),
        queries,
        projection("key_value", hidden_size, 2 * width, "column", keeps_input=False),
        Operator(
            name="rope", op_class="rope", module="attention", shard="heads", read_width=rotated, write_width=rotated
        ),
        _core(mixer, wide, width),
        outputs,
    )


def _core(mixer: ExpertAttentionSpec, wide: int, width: int) -> Operator:
    return Operator(
        name="attention_core",
        op_class="attention",
        module="attention_core",
        shard="heads",
        read_width=wide + 2 * width,
        write_width=wide,
        num_heads=mixer.top_k * mixer.num_kv_heads,
        num_kv_heads=mixer.num_kv_heads,
        qk_dim=mixer.head_dim,
        v_dim=mixer.head_dim,
        saved_width=wide + 2 * width,
        saved_shard="heads",
        saved_from="rope",
    )
