"""Inkling and Inkling 2: relative positions by projections, short convolutions on keys, values and both branches.

Shapes: ``transformers`` 5.23 ``models/inkling`` and ``models/inkling2``.  Sliding layers have heads of their own.  In
Inkling 2 attention and MLP read a mixture of the states of earlier blocks of layers (attention residuals): one learned
query a reader; the states pass along the pipeline, which no back-end here does.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layer_forms import changed, softmax_of
from planner.model.hf_config.sparse_forms import Ends
from planner.model.spec import AttentionSpec, LayerSpec, PartSpec


def sliding_heads(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Heads of sliding layers."""
    heads, kv_heads = keys.integer("swa_num_attention_heads"), keys.integer("swa_num_key_value_heads")
    width = keys.integer("swa_head_dim")
    if heads % kv_heads:
        keys.reader.refuse("swa_num_key_value_heads", f"must divide {heads} heads, is {kv_heads}")
        kv_heads = heads
    fields = {"num_heads": heads, "num_kv_heads": kv_heads, "head_dim": width, "v_head_dim": width}
    return [
        layer if _softmax(layer).sliding_window is None else changed(layer, **fields, qk_rope_head_dim=None)
        for layer in layers
    ]


def _softmax(layer: LayerSpec) -> AttentionSpec:
    attention = softmax_of(layer)
    assert attention is not None
    return attention


def _positions(keys: ClassKeys, hidden: int, attention: AttentionSpec) -> tuple[PartSpec, ...]:
    """A position state a head, and its products with a table of distances."""
    width = keys.integer("d_rel")
    extent = attention.sliding_window or keys.integer("rel_extent")
    states = attention.num_heads * width
    return (
        PartSpec(name="position_projection", kind="projection", in_features=hidden, out_features=states, cut="output"),
        PartSpec(
            name="position_scores",
            kind="projection",
            in_features=width,
            out_features=extent,
            rows=attention.num_heads,
            cut="heads",
        ),
    )


def _convolutions(keys: ClassKeys, hidden: int, attention: AttentionSpec, *, values: bool) -> list[PartSpec]:
    kernel, wide = keys.integer("conv_kernel_size"), attention.num_kv_heads * attention.head_dim
    branches = [
        PartSpec(name=f"{block}_convolution", kind="convolution", block=block, in_features=hidden, kernel=kernel)
        for block in ("attention", "mlp")
    ]
    inputs = [
        PartSpec(name=f"{name}_convolution", kind="convolution", in_features=wide, kernel=kernel, cut="heads")
        for name in ("key", "value")
    ]
    return [*inputs, *branches] if values else branches


def inkling_parts(keys: ClassKeys, hidden: int, layer: LayerSpec, _: int) -> tuple[PartSpec, ...]:
    """Positions, convolutions, and scores of the shared experts."""
    attention, shared = _softmax(layer), keys.optional("n_shared_experts", minimum=0) or 0
    parts = [*_positions(keys, hidden, attention), *_convolutions(keys, hidden, attention, values=True)]
    if layer.moe is not None:
        parts.append(PartSpec(name="router_scale", kind="scale", block="mlp", in_features=shared + 1, learned=1))
    if layer.moe is not None and shared:
        score = PartSpec(name="shared_scores", kind="projection", block="mlp", in_features=hidden, out_features=shared)
        parts.append(score)
    return tuple(parts)


def inkling2_parts(keys: ClassKeys, hidden: int, layer: LayerSpec, index: int) -> tuple[PartSpec, ...]:
    """Positions, clips, gate, sinks, convolutions, and the queries of attention residuals."""
    attention = _softmax(layer)
    keys.integer("n_layers_per_attn_res_block")
    wide, full = attention.num_heads * attention.head_dim, attention.sliding_window is None
    states = attention.num_heads * keys.integer("d_rel")
    parts = [
        *_positions(keys, hidden, attention),
        *_convolutions(keys, hidden, attention, values=True),
        PartSpec(name="gate_projection", kind="projection", in_features=hidden, out_features=wide, cut="output"),
        PartSpec(name="attention_gate", kind="gate", in_features=wide, cut="heads"),
        PartSpec(
            name="sink_projection",
            kind="projection",
            in_features=hidden,
            out_features=attention.num_heads,
            cut="output",
        ),
        PartSpec(name="query_clip", kind="scale", in_features=wide, cut="heads"),
        PartSpec(name="position_clip", kind="scale", in_features=states, cut="heads"),
        PartSpec(name="mlp_residual_query", kind="scale", block="mlp", in_features=hidden),
    ]
    if index:
        # Full layers read queries, keys and values through a query each.
        learned = hidden * (3 if full else 1)
        parts.append(PartSpec(name="residual_query", kind="scale", in_features=hidden, learned=learned))
    if full:
        taps = attention.num_kv_heads * keys.integer("conv_kernel_size")
        parts += [PartSpec(name=f"{name}_input_norm", kind="norm", in_features=hidden) for name in ("key", "value")]
        parts += [
            PartSpec(
                name=f"{name}_convolution_weights",
                kind="projection",
                in_features=hidden,
                out_features=taps,
                cut="output",
            )
            for name in ("key", "value")
        ]
    return tuple(parts)


def inkling2_ends(_: ClassKeys, hidden: int) -> Ends:
    """The query of the final mixture."""
    return (), (PartSpec(name="final_residual_query", kind="scale", in_features=hidden),)
