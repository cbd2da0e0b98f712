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


def delay_scale(_: ClassKeys, hidden: int, __: LayerSpec, ___: int) -> tuple[PartSpec, ...]:
    """A scale of the norm before the MLP, made once a pass from the delay through 32 features (voxtral_realtime)."""
    learned = 2 * 32 * hidden
    return (PartSpec(name="delay_scale", kind="scale", block="mlp", in_features=hidden, learned=learned),)


def segments(_: ClassKeys, hidden: int) -> Ends:
    """A table of two segments, text and image (kosmos-2.5)."""
    return (PartSpec(name="segment_table", kind="table", in_features=hidden, learned=2 * hidden),), ()


def large4_layers(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Learned scales of the softmax, indexers that norm their input, and layers whose keys do not rotate."""
    sources = keys.reader.integers("kv_source_layers", list(range(len(layers))))
    if sources != list(range(len(layers))):
        keys.reader.refuse("kv_source_layers", "asks for key-values shared between layers, which are not modelled here")
    rotated = keys.reader.integers("no_rope_layers", [int((index + 1) % 4 != 0) for index in range(len(layers))])
    if len(rotated) != len(layers):
        keys.reader.refuse("no_rope_layers", f"must hold one entry a layer ({len(layers)}), holds {len(rotated)}")
        rotated = [1] * len(layers)
    found = []
    for layer, rope in zip(layers, rotated, strict=True):
        attention = softmax_of(layer)
        assert attention is not None
        parts = [PartSpec(name="softmax_scale", kind="scale", in_features=attention.num_heads, bias=True)]
        if attention.indexer is not None and not attention.indexer.reuses_choice:
            heads = attention.indexer.num_heads
            parts += [
                PartSpec(name="index_input_norm", kind="norm", in_features=hidden, bias=True),
                PartSpec(name="index_softmax_scale", kind="scale", in_features=heads, bias=True),
            ]
        formed = layer if rope else changed(layer, qk_rope_head_dim=0)
        found.append(formed.model_copy(update={"parts": (*layer.parts, *parts)}))
    return found


def text_expert_width(keys: ClassKeys) -> int:
    """Width of the experts of text: the first of two (ernie4_5_vl_moe)."""
    return _two_widths(keys)[0]


def _two_widths(keys: ClassKeys) -> list[int]:
    widths = keys.reader.integers("moe_intermediate_size", [1536, 512])
    if len(widths) != 2 or not all(widths):
        keys.reader.refuse("moe_intermediate_size", "must hold two widths: of the experts of text, and of images")
        widths = [1, 1]
    return widths


def image_experts(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """A second set of experts in every routed layer, for tokens of images."""
    width = _two_widths(keys)[1]
    return [
        layer
        if layer.moe is None
        else layer.model_copy(update={"moe": layer.moe.model_copy(update={"image_intermediate_size": width})})
        for layer in layers
    ]


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
