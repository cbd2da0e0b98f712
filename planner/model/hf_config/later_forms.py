"""What layers of families of 2026 have besides: rules that ``tables.later_texts`` names.

Shapes: ``transformers`` 5.23 modeling files of step3p7, muse_spark, kosmos2, glm5_next.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layer_forms import PartsOf, changed, softmax_of
from planner.model.hf_config.sparse_forms import Ends
from planner.model.spec import LayerSpec, PartSpec


def sliding_query_heads(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Query heads of sliding layers (step3p5), and of single layers by ``per_layer_config``."""
    sliding = keys.optional("num_sliding_attention_heads")
    given = keys.reader.data.get("per_layer_config")
    listed = keys.reader.child("per_layer_config") if isinstance(given, dict) and given else None
    found = []
    for index, layer in enumerate(layers):
        attention = softmax_of(layer)
        assert attention is not None
        heads = (sliding if attention.sliding_window is not None else None) or attention.num_heads
        names = (str(index), f"{index:02d}", f"{index:03d}")
        own = next((name for name in names if listed is not None and name in listed.data), None)
        if listed is not None:  # a config that has them says every one
            heads = listed.child(own).integer("num_attention_heads", default=heads) if own else attention.num_heads
        if heads % attention.num_kv_heads:
            keys.reader.refuse("num_sliding_attention_heads", f"must be a multiple of {attention.num_kv_heads}")
            heads = attention.num_heads
        found.append(changed(layer, num_heads=heads))
    return found


def latent_expert_norms(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Experts on a width of their own, with norms before and behind each (muse_spark)."""
    latent, found = keys.width("moe_hidden_size"), []
    for layer in layers:
        if layer.moe is None:
            found.append(layer)
            continue
        norms = (
            PartSpec(name="experts_input_norm", kind="norm", block="mlp", in_features=latent),
            PartSpec(
                name="experts_output_norm",
                kind="norm",
                block="mlp",
                in_features=latent,
                rows=float(layer.moe.top_k),
            ),
        )
        moe = layer.moe.model_copy(update={"latent_size": latent})
        found.append(layer.model_copy(update={"moe": moe, "parts": (*layer.parts, *norms)}))
    return found


def residual_gates(_: ClassKeys, hidden: int, __: LayerSpec, ___: int) -> tuple[PartSpec, ...]:
    """Norms behind both branches, of which that of attention has no weights, and a gate a feature on the residuals."""
    return (
        PartSpec(name="attention_output_norm", kind="norm", in_features=hidden, learned=0),
        PartSpec(name="attention_residual_gate", kind="scale", in_features=hidden),
        PartSpec(name="mlp_output_norm", kind="norm", block="mlp", in_features=hidden),
        PartSpec(name="mlp_residual_gate", kind="scale", block="mlp", in_features=hidden),
    )


def inner_layer_norms(*, attention: bool) -> PartsOf:
    """Layer norms inside the MLP, and (``attention``) before the output projection of attention."""

    def parts(_: ClassKeys, hidden: int, layer: LayerSpec, __: int) -> tuple[PartSpec, ...]:
        assert layer.mlp is not None
        width = layer.mlp.intermediate_size
        within = PartSpec(name="mlp_inner_norm", kind="norm", block="mlp", in_features=width, bias=True, cut="features")
        before = PartSpec(name="attention_inner_norm", kind="norm", in_features=hidden, bias=True, cut="heads")
        return (before, within) if attention else (within,)

    return parts


def segments(_: ClassKeys, hidden: int) -> Ends:
    """A table of two segments, text and image (kosmos-2.5)."""
    return (PartSpec(name="segment_table", kind="table", in_features=hidden, learned=2 * hidden),), ()


def pooled_indexer(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """An indexer that scores pools of tokens, by a weight a feature from the layer's input (glm5_next)."""
    pool = keys.integer("index_kpool")
    found = []
    for layer in layers:
        attention = softmax_of(layer)
        indexer = attention.indexer if attention is not None else None
        if indexer is None or indexer.reuses_choice:
            found.append(layer)
            continue
        gate = PartSpec(
            name="index_pool_gate",
            kind="projection",
            in_features=hidden,
            out_features=indexer.head_dim,
            learned=(hidden + pool) * indexer.head_dim,
        )
        formed = changed(layer, indexer=indexer.model_copy(update={"pooled": pool}))
        found.append(formed.model_copy(update={"parts": (*layer.parts, gate)}))
    return found
