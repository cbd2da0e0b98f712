"""XLNet's layers: attention with projected distances, and what its class holds for segments and masked tokens.

Shapes: ``transformers`` 5.23 modeling_xlnet.py.  Read is what the class runs for tokens with labels: one stream.  Its
second stream (arXiv 1906.08237, section 2.3) runs where a batch brings a ``target_mapping``.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads
from planner.model.layer_parts import PartSpec
from planner.model.mixers.relative import RelativeAttentionSpec
from planner.model.spec import LayerSpec, TokenMixer

_SEGMENTS = 2


def relative_mixers(keys: ClassKeys, layers: int, hidden: int) -> list[TokenMixer | None]:
    """Attention of every layer: both ways, or back only."""
    heads, kind = keys.integer("n_head"), keys.text("attn_type", "bi")
    head_dim = divided_heads(keys.reader, "n_head", hidden, heads)
    if (keys.optional("d_head") or head_dim) != head_dim:
        keys.reader.refuse("d_head", f"must be the width {hidden} over the heads, {head_dim}")
    if kind not in ("bi", "uni"):
        keys.reader.refuse("attn_type", f"must be bi or uni, is {kind[:40]!r}")
    for key in ("use_mems_train", "bi_data"):
        if keys.on(key):
            keys.reader.refuse(key, "asks for hidden states of earlier segments, or halves of a batch, not modelled")
    return [RelativeAttentionSpec(num_heads=heads, head_dim=head_dim, both_ways=kind == "bi")] * layers


def with_segments(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Two vectors of each layer for pairs of tokens of one segment or of two, and one added to queries for them."""
    held = PartSpec(name="segments", kind="held", in_features=hidden, learned=(_SEGMENTS + 1) * hidden, cut="heads")
    return [layer.model_copy(update={"parts": (held,)}) for layer in layers]


def masked_token(_: ClassKeys, hidden: int) -> tuple[tuple[PartSpec, ...], tuple[PartSpec, ...]]:
    """The vector that stands for a masked token in the second stream."""
    return (PartSpec(name="masked_token", kind="held", in_features=hidden, learned=hidden),), ()
