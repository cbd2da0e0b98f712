"""Cross-attention of a decoder layer: queries from its own tokens, keys and values from the encoder's output.

It sees every source token, whatever the position (Vaswani et al., arXiv 1706.03762, section 3.2.3).  Keys and values
are projected once for a layer and source; what they are projected from is kept once for all layers, at the encoder's
end (``planner.model.encoder``).  Tensor parallelism splits its heads as it splits those of self-attention.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.mixers.kinds import NormKind
from planner.model.mixers.parts import projection
from planner.model.mixers.softmax import AttentionSpec
from planner.model.operator import Operator
from profiles.document import Document


class CrossAttentionSpec(Document):
    """Attention of a decoder layer to the encoder's output, ``source_width`` features a token."""

    kind: Literal["cross"] = "cross"
    num_heads: int = Field(gt=0)
    num_kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    source_width: int = Field(gt=0, description="width of the encoder's output")
    query_bias: bool = False
    key_bias: bool = False
    value_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["none", "per_head", "full_width"] = Field(
        default="none", exclude_if=lambda kind: kind == "none", description="RMS norms of queries and keys"
    )
    norm: NormKind | Literal["absent"] | None = Field(
        default=None,
        exclude_if=lambda kind: kind is None,
        description="the norm of its input, where it is not the layer's kind; absent = none",
    )
    merged: bool = Field(
        default=False,
        exclude_if=lambda on: not on,
        description="by the weights of the layer's self-attention, in one softmax with its own keys (t5gemma2)",
    )

    @classmethod
    def beside(cls, attention: AttentionSpec, source_width: int, *, bias: bool, merged: bool = False) -> Self:
        """With the heads of the layer's self-attention; ``bias``: on all four projections."""
        return cls(
            num_heads=attention.num_heads,
            num_kv_heads=attention.num_kv_heads,
            head_dim=attention.head_dim,
            source_width=source_width,
            query_bias=bias,
            key_bias=bias,
            value_bias=bias,
            output_bias=bias,
            merged=merged,
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads = {self.num_kv_heads} must divide num_heads = {self.num_heads}")
        return self


def cross_operators(cross: CrossAttentionSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """List the operators of one cross-attention; ``input_from`` names the operator that makes its queries' input."""
    if cross.merged:
        return tuple(replace(each, parameters=0) for each in _seen(cross, made_by="qkv"))
    width = cross.num_heads * cross.head_dim
    return (
        projection("cross_queries", hidden_size, width, "column", bias=cross.query_bias, saved_from=input_from),
        *_seen(cross, made_by="cross_queries"),
        projection("cross_output", width, hidden_size, "row", bias=cross.output_bias, saved_from="cross_core"),
    )


def _seen(cross: CrossAttentionSpec, *, made_by: str) -> tuple[Operator, ...]:
    """Keys and values of the source, and their product with the queries that ``made_by`` makes."""
    width, kv_width = cross.num_heads * cross.head_dim, cross.num_kv_heads * cross.head_dim
    key_values = projection("cross_key_values", cross.source_width, 2 * kv_width, "column", keeps_input=False)
    key_values = replace(
        key_values,
        parameters=key_values.parameters + kv_width * (cross.key_bias + cross.value_bias),
        saved_width=2 * kv_width,
        saved_shard="heads",
        saved_from="cross_key_values",
        of_source=True,
    )
    return (
        key_values,
        *_head_norms(cross),
        Operator(
            name="cross_core",
            op_class="attention",
            module="attention_core",
            shard="heads",
            read_width=width + 2 * kv_width,
            write_width=width,
            num_heads=cross.num_heads,
            num_kv_heads=cross.num_kv_heads,
            qk_dim=cross.head_dim,
            v_dim=cross.head_dim,
            causal=False,
            # Merged queries and outputs are those that self-attention keeps.
            saved_width=0 if cross.merged else width,
            saved_shard=None if cross.merged else "heads",
            saved_from="" if cross.merged else made_by,
            of_source=True,
        ),
    )


def _head_norms(cross: CrossAttentionSpec) -> tuple[Operator, ...]:
    """Norms of queries and keys: one vector for all heads, or one as wide as all of them."""
    if cross.qk_norm == "none":
        return ()
    widths = cross.num_heads * cross.head_dim, cross.num_kv_heads * cross.head_dim
    return (
        _norm("cross_query_norm", widths[0], cross, "cross_queries", of_source=False),
        _norm("cross_key_norm", widths[1], cross, "cross_key_values", of_source=True),
    )


def _norm(name: str, width: int, cross: CrossAttentionSpec, made_by: str, *, of_source: bool) -> Operator:
    per_head = cross.qk_norm == "per_head"
    weights = cross.head_dim if per_head else width
    return Operator(
        name=name,
        op_class="norm",
        module="attention",
        shard="heads",
        parameters=weights,
        replicated_parameters=weights if per_head else 0,
        read_width=width,
        write_width=width,
        saved_width=width,
        saved_shard="heads",
        saved_from=made_by,
        of_source=of_source,
    )
