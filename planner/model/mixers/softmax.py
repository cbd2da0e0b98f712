"""Softmax attention of one layer: grouped-query and latent, over all tokens, a window, or tokens that an indexer picks.

From the normed input of the layer to the output projection.  Accounting of kept activations: see
``planner.model.operators``.  Grouped-query attention runs one fused qkv projection; latent attention (MLA,
arXiv 2405.04434, section 2.1) runs low-rank down projections, a norm on each latent, and up projections.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.mixers.indexer import IndexerSpec, indexer_operators
from planner.model.mixers.kinds import NormKind
from planner.model.norm_operators import norm_parameters
from planner.model.operator import Operator, Shard
from profiles.document import Document


class PositionBias(Document):
    """Learned biases of attention logits by distance, ``buckets`` a head (T5, arXiv 1910.10683, section 2.1)."""

    buckets: int = Field(gt=0)
    shared: bool = Field(default=False, description="the table is another layer's; this one adds what that one made")
    serves: bool = Field(default=False, description="whether later layers add what this one made")


class AttentionSpec(Document):
    """Self-attention of one layer kind.

    ``gqa`` covers multi-head, grouped-query and multi-query attention; ``mla`` is DeepSeek's latent attention
    (arXiv 2405.04434, section 2.1): then ``head_dim = qk_nope_head_dim + qk_rope_head_dim``.
    """

    kind: Literal["gqa", "mla"] = "gqa"
    num_heads: int = Field(gt=0)
    num_kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0, description="query/key width of one head")
    v_head_dim: int = Field(gt=0, description="value width of one head")
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["none", "per_head", "full_width"] = "none"
    qk_norm_bias: bool = False
    sinks: bool = Field(default=False, description="one learned sink logit a head (gpt_oss)")
    sliding_window: int | None = Field(default=None, gt=0, description="tokens seen to the left; None = all")
    causal: bool = True
    q_lora_rank: int | None = Field(default=None, gt=0)
    kv_lora_rank: int | None = Field(default=None, gt=0)
    qk_rope_head_dim: int | None = Field(
        default=None, ge=0, description="rotated part of head_dim; None = all of it, where the model has rope"
    )
    logit_softcap: float | None = Field(default=None, gt=0, description="tanh cap on attention logits (gemma2)")

    output_gate: bool = Field(
        default=False,
        exclude_if=lambda on: not on,
        description="a sigmoid gate on the output of attention, as wide as the queries and projected with them",
    )
    differential: bool = Field(
        default=False,
        exclude_if=lambda on: not on,
        description="each head minus a part of another, run over both halves of the values (arXiv 2410.05258)",
    )
    reuses_key_values: bool = Field(
        default=False, exclude_if=lambda on: not on, description="keys and values of an earlier layer"
    )
    input_size: int | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda size: size is None,
        description="width that queries, keys and values are projected from, if not the layer's (zamba)",
    )
    keys_are_values: bool = Field(
        default=False, exclude_if=lambda on: not on, description="one projection gives keys and values"
    )
    indexer: IndexerSpec | None = Field(
        default=None,
        exclude_if=lambda indexer: indexer is None,
        description="picks the tokens that attention sees (DSA); None = all in reach",
    )

    position_bias: PositionBias | None = Field(
        default=None,
        exclude_if=lambda bias: bias is None,
        description="biases of the logits by distance; None = none",
    )
    key_bias: bool = Field(
        default=True, exclude_if=lambda on: on, description="whether qkv_bias reaches the keys (not in Whisper)"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads = {self.num_kv_heads} must divide num_heads = {self.num_heads}")
        if self.kind == "mla" and (self.kv_lora_rank is None or self.qk_rope_head_dim is None):
            raise ValueError("latent attention needs kv_lora_rank and qk_rope_head_dim")
        if self.kind == "mla" and self.output_gate:
            raise ValueError("an output gate is modelled for grouped-query attention only")
        if self.indexer is not None and self.indexer.reads_query_latent and self.q_lora_rank is None:
            raise ValueError("the indexer reads the query latent, which needs q_lora_rank")
        if self.qk_rope_head_dim is not None and self.qk_rope_head_dim > self.head_dim:
            raise ValueError(f"qk_rope_head_dim = {self.qk_rope_head_dim} exceeds head_dim = {self.head_dim}")
        return self


def attention_operators(
    attention: AttentionSpec, hidden_size: int, *, norm: NormKind, rope: bool, input_from: str
) -> tuple[Operator, ...]:
    """List the operators of one attention block; ``input_from`` names the operator that makes its input."""
    if attention.kind == "mla":
        projections = _latent_projections(attention, hidden_size, norm, input_from)
    else:
        projections = _fused_projection(attention, hidden_size, input_from)
    return (
        *projections,
        *_qk_norm(attention, norm),
        *(_rope(attention) if rope else ()),
        *(_indexer(attention, hidden_size) if attention.indexer else ()),
        _core(attention, rope=rope),
        *(_gate(attention) if attention.output_gate else ()),
        _output_projection(attention, hidden_size),
    )


def _matmul(
    name: str,
    in_features: int,
    out_features: int,
    shard: Shard,
    *,
    bias: bool,
    saved: int,
    saved_from: str,
    saved_shard: Shard,
) -> Operator:
    bias_size = out_features if bias else 0
    parameters = in_features * out_features + bias_size
    replicated = {"replicated": parameters, "row": bias_size}.get(shard, 0)
    return Operator(
        name=name,
        op_class="matmul",
        module="attention",
        shard=shard,
        parameters=parameters,
        replicated_parameters=replicated,
        in_features=in_features,
        out_features=out_features,
        read_width=in_features,
        write_width=out_features,
        saved_width=saved,
        saved_shard=saved_shard if saved else None,
        saved_from=saved_from if saved else "",
    )


def _fused_projection(attention: AttentionSpec, hidden_size: int, input_from: str) -> tuple[Operator, ...]:
    query = attention.num_heads * attention.head_dim * (2 if attention.output_gate else 1)
    key_value, source = _key_value_width(attention), attention.input_size or hidden_size
    unbiased = 0 if attention.key_bias else attention.num_kv_heads * attention.head_dim
    biases = query + key_value - unbiased if attention.qkv_bias else 0
    operator = Operator(
        name="qkv",
        op_class="matmul",
        module="attention",
        shard="column",
        parameters=source * (query + key_value) + biases,
        in_features=source,
        out_features=query + key_value,
        read_width=source,
        write_width=query + key_value,
        num_heads=attention.num_heads,
        num_kv_heads=attention.num_kv_heads,
        qk_dim=attention.head_dim,
        v_dim=attention.v_head_dim,
        saved_width=source,
        saved_shard="sequence",
        saved_from=input_from,
    )
    return (operator,)


def _key_value_width(attention: AttentionSpec) -> int:
    """Keys and values of a token that the layer itself makes."""
    if attention.reuses_key_values:
        return 0
    width = attention.head_dim + (0 if attention.keys_are_values else attention.v_head_dim)
    return attention.num_kv_heads * width


def _latent_projections(
    attention: AttentionSpec, hidden_size: int, norm: NormKind, input_from: str
) -> tuple[Operator, ...]:
    heads, rope_dim = attention.num_heads, attention.qk_rope_head_dim or 0
    latent = attention.kv_lora_rank or 0
    query = heads * attention.head_dim
    up = heads * (attention.head_dim - rope_dim + attention.v_head_dim)
    bias = attention.qkv_bias
    queries = _latent_queries(attention, hidden_size, norm, input_from, query)
    # The input of kv_down is the tensor that q_down (or q_projection) already keeps.
    return (
        *queries,
        _matmul(
            "kv_down",
            hidden_size,
            latent + rope_dim,
            "replicated",
            bias=bias,
            saved=0,
            saved_from="",
            saved_shard="sequence",
        ),
        _latent_norm("kv_latent_norm", latent, norm, "kv_down"),
        _matmul(
            "kv_up", latent, up, "column", bias=False, saved=latent, saved_from="kv_latent_norm", saved_shard="sequence"
        ),
    )


def _latent_queries(
    attention: AttentionSpec, hidden_size: int, norm: NormKind, input_from: str, query: int
) -> tuple[Operator, ...]:
    """Queries of latent attention: one projection, or a low-rank pair with a norm between."""
    if attention.q_lora_rank is None:
        return (
            _matmul(
                "q_projection",
                hidden_size,
                query,
                "column",
                bias=False,
                saved=hidden_size,
                saved_from=input_from,
                saved_shard="sequence",
            ),
        )
    rank = attention.q_lora_rank
    return (
        _matmul(
            "q_down",
            hidden_size,
            rank,
            "replicated",
            bias=attention.qkv_bias,
            saved=hidden_size,
            saved_from=input_from,
            saved_shard="sequence",
        ),
        _latent_norm("q_latent_norm", rank, norm, "q_down"),
        _matmul(
            "q_up", rank, query, "column", bias=False, saved=rank, saved_from="q_latent_norm", saved_shard="sequence"
        ),
    )


def _latent_norm(name: str, width: int, norm: NormKind, saved_from: str) -> Operator:
    parameters = norm_parameters(width, norm)
    return Operator(
        name=name,
        op_class="norm",
        module="attention",
        shard="sequence",
        parameters=parameters,
        replicated_parameters=parameters,
        read_width=width,
        write_width=width,
        saved_width=width,
        saved_shard="sequence",
        saved_from=saved_from,
    )


def _qk_norm(attention: AttentionSpec, norm: NormKind) -> tuple[Operator, ...]:
    """Norm of queries and keys: one weight vector for all heads, or one as wide as all heads together.

    The full-width form (olmo2) splits its weights with the heads; its statistics need a sum over tp.
    """
    if attention.qk_norm == "none":
        return ()
    normed = 1 if attention.reuses_key_values else 2
    width = (attention.num_heads + (normed - 1) * attention.num_kv_heads) * attention.head_dim
    weights = normed * attention.head_dim if attention.qk_norm == "per_head" else width
    parameters = 2 * weights if attention.qk_norm_bias else weights
    operator = Operator(
        name="qk_norm",
        op_class="norm",
        module="attention",
        shard="heads",
        parameters=parameters,
        replicated_parameters=parameters if attention.qk_norm == "per_head" else 0,
        read_width=width,
        write_width=width,
        saved_width=width,
        saved_shard="heads",
        saved_from="qkv",
    )
    return (operator,)


def _rope(attention: AttentionSpec) -> tuple[Operator, ...]:
    """Rotation of queries and keys; its backward needs only the position table, so nothing is kept.

    MLA rotates one key shared by all heads and then copies it into every head's key.
    """
    rotated = attention.qk_rope_head_dim or attention.head_dim
    if attention.kind == "mla":
        read = attention.num_heads * rotated + rotated
        write = 2 * attention.num_heads * rotated
    else:
        read = write = (attention.num_heads + attention.num_kv_heads) * rotated
    return (
        Operator(name="rope", op_class="rope", module="attention", shard="heads", read_width=read, write_width=write),
    )


def _core(attention: AttentionSpec, *, rope: bool) -> Operator:
    heads, kv_heads = attention.num_heads, attention.num_kv_heads
    inputs = heads * attention.head_dim + kv_heads * (attention.head_dim + attention.v_head_dim)
    # The layer that makes shared keys and values keeps them.
    own = heads * attention.head_dim if attention.reuses_key_values else inputs
    # Differential attention runs twice, once over each half of the values.
    runs = 2 if attention.differential else 1
    values = attention.v_head_dim * runs
    bias = attention.position_bias
    return Operator(
        name="attention_core",
        op_class="attention",
        module="attention_core",
        shard="heads",
        parameters=(heads if attention.sinks else 0) + _bias_parameters(attention),
        read_width=inputs,
        write_width=heads * values,
        num_heads=heads,
        num_kv_heads=kv_heads,
        qk_dim=attention.head_dim * runs,
        v_dim=values,
        window=attention.indexer.top_k if attention.indexer else attention.sliding_window,
        causal=attention.causal,
        kept_scores=heads if bias is not None and not bias.shared and not bias.serves else 0,
        saved_width=own,
        saved_shard="heads",
        saved_from=_maker_of_queries(attention, rope=rope),
    )


def _bias_parameters(attention: AttentionSpec) -> int:
    """Learned biases by distance, split with the heads; 0 where another layer holds them."""
    bias = attention.position_bias
    return attention.num_heads * bias.buckets if bias is not None and not bias.shared else 0


def _maker_of_queries(attention: AttentionSpec, *, rope: bool) -> str:
    if rope:
        return "rope"
    if attention.qk_norm != "none":
        return "qk_norm"
    if attention.kind == "gqa":
        return "qkv"
    return "q_projection" if attention.q_lora_rank is None else "q_up"


def _indexer(attention: AttentionSpec, hidden_size: int) -> tuple[Operator, ...]:
    assert attention.indexer is not None
    return indexer_operators(attention.indexer, hidden_size, attention.q_lora_rank)


def _gate(attention: AttentionSpec) -> tuple[Operator, ...]:
    """Output times the sigmoid of the gate; keeps both."""
    width = attention.num_heads * attention.v_head_dim
    operator = Operator(
        name="output_gate",
        op_class="gate",
        module="attention",
        shard="heads",
        read_width=2 * width,
        write_width=width,
        saved_width=2 * width,
        saved_shard="heads",
        saved_from="attention_core",
    )
    return (operator,)


def _output_projection(attention: AttentionSpec, hidden_size: int) -> Operator:
    width = attention.num_heads * attention.v_head_dim
    return _matmul(
        "output_projection",
        width,
        hidden_size,
        "row",
        bias=attention.output_bias,
        saved=width,
        saved_from="output_gate" if attention.output_gate else "attention_core",
        saved_shard="heads",
    )
