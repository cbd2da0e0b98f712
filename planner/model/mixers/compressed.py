"""Compressed attention of DeepSeek-V4: a window of tokens, and one key for every few tokens of the whole past.

All heads share one key-value head whose keys are its values.  Queries come from a latent.  A compressor makes one
entry of every ``rate`` tokens, a softmax-gated sum; where entries ``overlap`` it makes two series and an entry sees
``2 rate`` tokens.  With an indexer (compressed sparse attention) a token sees the best ``index_top_k`` entries, without
(heavily compressed attention) all of them; without a rate (sliding layers) the window alone.  The output goes through
``output_groups`` narrow projections of as many groups of heads, then one from all of them.

Forward FLOPs of one token beside the projections, ``H`` heads of ``d``, context ``c``, entries ``c / rate``::

    window                4 H d min(c, window)
    entries               4 H d min(c / rate, top_k)
    index scores          2 h_i d_i c / rate

Kept: the latent, queries, the one key-value head, both inputs of the compressor's sums, entries are made again.

How it is cut: query heads over tp, with the groups of the output projection; the one key-value head, the compressor and
the indexer are on every rank.  A ring of context parallelism does not apply: entries come from the whole past.
Recomputed with the whole layer only.  Source: ``transformers`` 5.23 ``models/deepseek_v4`` (paper, section 2.3).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.mixers.kinds import OtherMixer
from planner.model.mixers.parts import projection
from planner.model.operator import Operator


class CompressedAttentionSpec(OtherMixer):
    """Compressed attention of one layer kind."""

    kind: Literal["compressed"] = "compressed"
    num_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    query_rank: int = Field(gt=0)
    window: int = Field(gt=0, description="tokens that are seen one by one")
    rate: int | None = Field(default=None, gt=0, description="tokens of one compressed entry; None = the window alone")
    overlap: bool = Field(default=False, description="entries see the tokens of the one before too")
    index_heads: int = Field(default=0, ge=0, description="heads of the indexer; 0 = all entries are seen")
    index_head_dim: int = Field(default=0, ge=0)
    index_top_k: int = Field(default=0, ge=0)
    output_groups: int = Field(default=1, gt=0)
    output_rank: int = Field(gt=0, description="width of the output of one group of heads")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.num_heads * self.head_dim % self.output_groups:
            raise ValueError(f"{self.output_groups} output groups must divide {self.num_heads} heads")
        if self.index_heads and not (self.rate and self.index_head_dim and self.index_top_k):
            raise ValueError("an indexer needs a rate of compression, index_head_dim and index_top_k")
        return self

    @property
    def num_kv_heads(self) -> int:
        """Query heads: tensor parallelism copies the one key-value head to every rank."""
        return self.num_heads

    @property
    def v_head_dim(self) -> int:
        """Values are the keys."""
        return self.head_dim


def compressed_operators(mixer: CompressedAttentionSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    heads, width, rank = mixer.num_heads, mixer.head_dim, mixer.query_rank
    wide = heads * width
    rotation = Operator(
        name="rope", op_class="rope", module="attention", shard="heads", read_width=2 * wide, write_width=2 * wide
    )
    return (
        projection("q_down", hidden_size, rank, "replicated", saved_from=input_from),
        _norm("q_latent_norm", rank, "q_down"),
        projection("q_up", rank, wide, "column", saved_from="q_latent_norm"),
        projection("key_value", hidden_size, width, "replicated", keeps_input=False),
        _norm("key_value_norm", width, "key_value"),
        rotation,
        *_compressor(mixer, hidden_size),
        _window(mixer, wide),
        *_entries(mixer, wide),
        *_output(mixer, hidden_size, wide),
    )


def _norm(name: str, width: int, saved_from: str) -> Operator:
    return Operator(
        name=name,
        op_class="norm",
        module="attention",
        shard="sequence",
        parameters=width,
        replicated_parameters=width,
        read_width=width,
        write_width=width,
        saved_width=width,
        saved_shard="sequence",
        saved_from=saved_from,
    )


def _pool(prefix: str, mixer: CompressedAttentionSpec, hidden_size: int, width: int) -> tuple[Operator, ...]:
    """One compressor to entries of ``width``: two projections, a learned weight a place, a norm."""
    rate = mixer.rate or 1
    series = (2 if mixer.overlap else 1) * width
    learned = rate * series + width
    gated_sum = Operator(
        name=f"{prefix}_sum",
        op_class="gate",
        module="attention",
        shard="replicated",
        parameters=learned,
        replicated_parameters=learned,
        read_width=2 * series,
        write_width=width // rate or 1,
        saved_width=2 * series,
        saved_shard="sequence",
        saved_from=f"{prefix}_gate",
    )
    return (
        projection(f"{prefix}_values", hidden_size, series, "replicated", keeps_input=False),
        projection(f"{prefix}_gate", hidden_size, series, "replicated", keeps_input=False),
        gated_sum,
    )


def _compressor(mixer: CompressedAttentionSpec, hidden_size: int) -> tuple[Operator, ...]:
    if mixer.rate is None:
        return ()
    main = _pool("compress", mixer, hidden_size, mixer.head_dim)
    if not mixer.index_heads:
        return main
    heads, width = mixer.index_heads, mixer.index_head_dim
    scores = Operator(
        name="index_scores",
        op_class="index_scores",
        module="attention",
        shard="replicated",
        read_width=heads * width + width + heads,
        write_width=mixer.index_top_k,
        num_heads=heads,
        num_kv_heads=1,
        qk_dim=width,
        stride=mixer.rate,
        saved_width=heads * width + heads + 2 * mixer.index_top_k,
        saved_shard="sequence",
        saved_from="index_query",
    )
    return (
        *main,
        *_pool("index", mixer, hidden_size, width),
        projection("index_query", mixer.query_rank, heads * width, "replicated", keeps_input=False),
        projection("index_weights", hidden_size, heads, "replicated", keeps_input=False),
        scores,
    )


def _window(mixer: CompressedAttentionSpec, wide: int) -> Operator:
    return Operator(
        name="attention_core",
        op_class="attention",
        module="attention_core",
        shard="heads",
        parameters=mixer.num_heads,  # a sink a head
        read_width=wide + mixer.head_dim,
        write_width=wide,
        num_heads=mixer.num_heads,
        num_kv_heads=1,
        qk_dim=mixer.head_dim,
        v_dim=mixer.head_dim,
        window=mixer.window,
        saved_width=wide + mixer.head_dim,
        saved_shard="heads",
        saved_from="rope",
    )


def _entries(mixer: CompressedAttentionSpec, wide: int) -> tuple[Operator, ...]:
    """Attention to compressed entries: in one kernel with the window, so that queries are kept once."""
    if mixer.rate is None:
        return ()
    operator = Operator(
        name="attention_entries",
        op_class="attention",
        module="attention_core",
        shard="heads",
        read_width=mixer.head_dim,
        num_heads=mixer.num_heads,
        num_kv_heads=1,
        qk_dim=mixer.head_dim,
        v_dim=mixer.head_dim,
        window=mixer.index_top_k * mixer.rate if mixer.index_heads else None,
        stride=mixer.rate,
    )
    return (operator,)


def _output(mixer: CompressedAttentionSpec, hidden_size: int, wide: int) -> tuple[Operator, ...]:
    groups, rank = mixer.output_groups, mixer.output_rank
    narrow = Operator(
        name="output_narrow",
        op_class="matmul",
        module="attention",
        shard="heads",
        parameters=wide * rank,
        in_features=wide // groups,
        out_features=rank,
        tokens_per_token=float(groups),
        read_width=wide,
        write_width=groups * rank,
        saved_width=wide,
        saved_shard="heads",
        saved_from="attention_core",
    )
    return (narrow, projection("output_projection", groups * rank, hidden_size, "row", saved_from="output_narrow"))
