"""The indexer of sparse attention (DSA, DeepSeek-V3.2): few narrow heads score all earlier tokens, the best are seen.

Scores of one token: ``2 * context * heads * dim`` FLOPs over the whole causal context, then the ``top_k`` best.  The
attention core behind it sees ``min(i, top_k)`` tokens: as a window of ``top_k`` in FLOPs.  Queries come from the query
latent, one key a token from the layer's input (with a layer norm), and a weight a head.  The indexer is trained by a
loss of its own on detached inputs; kept are its inputs, queries and keys.  Kernels do not write the scores (masks of
``top_k`` indices only); a back-end that does needs ``s`` values a token more.

How it is cut: heads are replicated over tp (Megatron-Core 0.19 experimental_attention_variant/dsa.py: duplicated
linears).  A ring does not apply: every token needs all scores.
"""

from __future__ import annotations

from pydantic import Field

from planner.model.mixers.parts import projection
from planner.model.operator import Operator
from profiles.document import Document


class IndexerSpec(Document):
    """Indexer of sparse attention: ``num_heads`` heads of ``head_dim`` choose ``top_k`` tokens."""

    num_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    top_k: int = Field(gt=0)
    reads_query_latent: bool = True
    weighted: bool = Field(
        default=True, exclude_if=lambda on: on, description="a weight a head, projected from the layer's input"
    )
    rms_norms: bool = Field(
        default=False, exclude_if=lambda on: not on, description="norms of queries and keys, not a layer norm of keys"
    )
    pooled: int = Field(
        default=1, gt=0, exclude_if=lambda size: size == 1, description="tokens whose keys are scored as one"
    )
    reuses_choice: bool = Field(
        default=False, description="takes the tokens that an earlier layer chose: no parameters and no operators"
    )


def indexer_operators(indexer: IndexerSpec, hidden_size: int, query_rank: int | None) -> tuple[Operator, ...]:
    """Queries, key, weights and scores of the indexer; none where the choice is an earlier layer's."""
    if indexer.reuses_choice:
        return ()
    heads, width = indexer.num_heads, indexer.head_dim
    source = query_rank if indexer.reads_query_latent and query_rank is not None else hidden_size
    normed = (heads + 1) * width if indexer.rms_norms else width
    key_norm = Operator(
        name="index_key_norm",
        op_class="norm",
        module="attention",
        shard="replicated",
        parameters=2 * width,  # weight and bias of one norm, or the weights of two
        replicated_parameters=2 * width,
        read_width=normed,
        write_width=normed,
        saved_width=normed,
        saved_shard="sequence",
        saved_from="index_key",
    )
    scores = Operator(
        name="index_scores",
        op_class="index_scores",
        module="attention",
        shard="replicated",
        read_width=heads * width + width + heads,
        write_width=indexer.top_k,
        num_heads=heads,
        num_kv_heads=1,
        qk_dim=width,
        stride=indexer.pooled,
        saved_width=heads * width + width + heads + 2 * indexer.top_k,
        saved_shard="sequence",
        saved_from="index_query",
    )
    return (
        projection("index_query", source, heads * width, "replicated", keeps_input=False),
        projection("index_key", hidden_size, width, "replicated", keeps_input=False),
        key_norm,
        *(
            (projection("index_weights", hidden_size, heads, "replicated", keeps_input=False),)
            if indexer.weighted
            else ()
        ),
        scores,
    )
