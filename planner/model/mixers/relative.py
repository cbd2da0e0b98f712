"""Attention with projected relative positions (Transformer-XL, arXiv 1901.02860, section 3.3; XLNet).

Scores are the sum of two products: queries with keys, and queries with projected encodings of all distances.  Of ``s``
tokens there are ``2 s`` distances where a token sees both ways, ``s`` where it looks back.  A learned vector of each
head is added to the queries of each product.  The class projects the encodings of every sample for itself, keeps the
scores, and has no fused kernel.

Forward FLOPs of a token beside the projections: ``2 s heads ((1 + d) head_dim + head_dim)``, ``d`` distances a token.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import EqualHeads
from planner.model.mixers.parts import projection
from planner.model.operator import Operator


class RelativeAttentionSpec(EqualHeads):
    """Attention of one layer kind with projected distances; no biases."""

    kind: Literal["relative"] = "relative"
    both_ways: bool = Field(default=True, description="whether a token sees later ones")


def relative_operators(mixer: RelativeAttentionSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the input of the layer to the output projection."""
    width, distances = mixer.num_heads * mixer.head_dim, 2 if mixer.both_ways else 1
    positions = replace(
        projection("distance_keys", hidden_size, width, "column", keeps_input=False),
        tokens_per_token=float(distances),
        read_width=distances * hidden_size,
        write_width=distances * width,
        saved_width=distances * (hidden_size + width),
        saved_shard="sequence",
    )
    core = Operator(
        name="attention_core",
        op_class="attention",
        module="attention_core",
        shard="heads",
        parameters=2 * width,
        read_width=(3 + distances) * width,
        write_width=width,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_heads,
        qk_dim=(1 + distances) * mixer.head_dim,
        v_dim=mixer.head_dim,
        causal=not mixer.both_ways,
        kept_scores=mixer.num_heads,
        saved_width=3 * width,
        saved_shard="heads",
        saved_from="qkv",
    )
    return (
        projection("qkv", hidden_size, 3 * width, "column", saved_from=input_from),
        positions,
        core,
        projection("output_projection", width, hidden_size, "row", saved_from="attention_core"),
    )
