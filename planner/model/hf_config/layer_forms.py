"""What layers of single families have besides attention and MLP: rules that the tables of families name.

Shapes: ``transformers`` 5.23 modeling files.  A rule takes the layers that an entry of the tables gives and returns
them with their parts; ``every`` makes one from what a single layer gets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import LayersRule
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, PartSpec

PartsOf = Callable[[ClassKeys, int, LayerSpec, int], tuple[PartSpec, ...]]
"""Parts of one layer: keys, hidden width, the layer, its index."""


def softmax_of(layer: LayerSpec) -> AttentionSpec | None:
    """The layer's softmax attention, if it has one."""
    return layer.attention if isinstance(layer.attention, AttentionSpec) else None


def changed(layer: LayerSpec, **fields: Any) -> LayerSpec:
    """The layer with other fields of its attention."""
    return layer.model_copy(update={"attention": layer.attention.model_copy(update=fields)})


def every(*parts_of: PartsOf) -> LayersRule:
    """Every layer with the parts that the rules give it."""

    def rule(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
        found = []
        for index, layer in enumerate(layers):
            parts = tuple(part for each in parts_of for part in each(keys, hidden, layer, index))
            found.append(layer.model_copy(update={"parts": (*layer.parts, *parts)}))
        return found

    return rule


def in_turn(*rules: LayersRule) -> LayersRule:
    """Several rules, one after the other."""

    def rule(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
        for each in rules:
            layers = each(keys, hidden, layers)
        return layers

    return rule


def attention_gate(*, per_head: bool = False, switch: str | None = None, bias: bool | str = False) -> PartsOf:
    """A gate on the output of attention with a projection of its own: one value a head, or one a feature."""

    def parts(keys: ClassKeys, hidden: int, layer: LayerSpec, _: int) -> tuple[PartSpec, ...]:
        biased = keys.on(bias)
        attention = softmax_of(layer)
        if attention is None or (switch is not None and not keys.on(switch)):
            return ()
        width = attention.num_heads * attention.v_head_dim
        gates = attention.num_heads if per_head else width
        return (
            PartSpec(
                name="gate_projection",
                kind="projection",
                in_features=hidden,
                out_features=gates,
                bias=biased,
                cut="output",
            ),
            PartSpec(name="attention_gate", kind="gate", in_features=width, cut="heads"),
        )

    return parts


def gate_bias_by_head(_: ClassKeys, __: int, layer: LayerSpec, ___: int) -> tuple[PartSpec, ...]:
    """One learned constant a head on the gate of attention (beam)."""
    attention = softmax_of(layer)
    if attention is None:
        return ()
    width = attention.num_heads * attention.v_head_dim
    learned = attention.num_heads
    return (PartSpec(name="gate_bias", kind="scale", in_features=width, learned=learned, cut="heads"),)


def norm_behind_experts(_: ClassKeys, hidden: int, layer: LayerSpec, __: int) -> tuple[PartSpec, ...]:
    """A norm on the output of the experts (axk1)."""
    return () if layer.moe is None else (PartSpec(name="experts_norm", kind="norm", block="mlp", in_features=hidden),)


def inner_norms(_: ClassKeys, __: int, layer: LayerSpec, ___: int) -> tuple[PartSpec, ...]:
    """Norms before the output projections of attention and MLP (bitnet)."""
    attention, mlp = softmax_of(layer), layer.mlp
    assert attention is not None
    assert mlp is not None
    width = attention.num_heads * attention.v_head_dim
    return (
        PartSpec(name="attention_inner_norm", kind="norm", in_features=width, cut="heads"),
        PartSpec(name="mlp_inner_norm", kind="norm", block="mlp", in_features=mlp.intermediate_size, cut="features"),
    )


def learned_activation(_: ClassKeys, __: int, layer: LayerSpec, ___: int) -> tuple[PartSpec, ...]:
    """Two learned scalars of the activation (xIELU, apertus)."""
    assert layer.mlp is not None
    width = layer.mlp.intermediate_size
    return (PartSpec(name="xielu", kind="scale", block="mlp", in_features=width, learned=2, cut="features"),)


def differential_heads(_: ClassKeys, __: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Differential attention: four vectors as wide as a head weigh one half of the heads against the other."""
    found = []
    for layer in layers:
        attention = softmax_of(layer)
        assert attention is not None
        width, learned = attention.num_heads * attention.v_head_dim, 4 * attention.head_dim
        # Their difference is normed without weights.
        part = PartSpec(name="head_difference", kind="scale", in_features=2 * width, learned=learned, cut="heads")
        found.append(changed(layer, differential=True).model_copy(update={"parts": (part,)}))
    return found


def doge_parts(keys: ClassKeys, hidden: int, layer: LayerSpec, _: int) -> tuple[PartSpec, ...]:
    """A mask from the values, and scales on both residuals."""
    keys.optional("num_experts"), keys.optional("num_experts_per_tok")  # of the routed form, which is refused
    attention = softmax_of(layer)
    assert attention is not None
    heads, values = attention.num_kv_heads, attention.num_kv_heads * attention.v_head_dim
    return (
        PartSpec(
            name="mask_projection",
            kind="projection",
            in_features=values,
            out_features=heads,
            bias=keys.on("attention_bias"),
        ),
        PartSpec(name="mask_scale", kind="scale", in_features=heads),
        PartSpec(name="attention_residual_scale", kind="scale", in_features=hidden),
        PartSpec(name="mlp_residual_scale", kind="scale", block="mlp", in_features=hidden),
    )


def heads_by_layer(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """A number of query heads for every layer (laguna)."""
    given = keys.reader.integers("num_attention_heads_per_layer", [])
    if not given:
        return layers
    if len(given) != len(layers):
        said = f"must hold one entry a layer ({len(layers)}), holds {len(given)}"
        keys.reader.refuse("num_attention_heads_per_layer", said)
        return layers
    return [changed(layer, num_heads=_dividing(keys, layer, heads)) for layer, heads in zip(layers, given, strict=True)]


def _dividing(keys: ClassKeys, layer: LayerSpec, heads: int) -> int:
    """``heads``, if the layer's key-value heads divide them."""
    if heads and heads % layer.attention.num_kv_heads == 0:
        return heads
    said = f"must hold multiples of {layer.attention.num_kv_heads} key-value heads, holds {heads}"
    keys.reader.refuse("num_attention_heads_per_layer", said)
    return layer.attention.num_heads


def laguna_gate(keys: ClassKeys, hidden: int, layer: LayerSpec, index: int) -> tuple[PartSpec, ...]:
    """A gate on the output of attention: one value a head (true, "per-head"), or one a feature."""
    given = keys.reader.data.get("gating", True)
    if isinstance(given, str):
        given = keys.reader.text("gating", default="per-head") == "per-head"
    else:
        given = keys.reader.boolean("gating", default=True)
    return attention_gate(per_head=given)(keys, hidden, layer, index)


def mimo_windows_heads(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Sliding layers have twice the key-value heads, and sinks; values have a width of their own."""
    width = keys.integer("v_head_dim")
    found = []
    for layer in layers:
        attention = softmax_of(layer)
        assert attention is not None
        slides = attention.sliding_window is not None
        kv_heads = attention.num_kv_heads * (2 if slides else 1)
        if attention.num_heads % kv_heads:
            keys.reader.refuse("num_key_value_heads", f"times two must divide {attention.num_heads} heads")
            kv_heads = attention.num_kv_heads
        found.append(changed(layer, num_kv_heads=kv_heads, v_head_dim=width, sinks=slides))
    return found


def longcat_pairs(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Every layer of the config is two of attention and MLP; experts stand beside the first MLP.

    They read what the first MLP reads and add to the output of the second.  Zero experts give their input back.  The
    class allocates input projections for zero experts too, which nothing uses.
    """
    zero = keys.optional("zero_expert_num", minimum=0) or 0
    mlp = MlpSpec(intermediate_size=keys.width("ffn_hidden_size"), gated=True)
    found = []
    for layer in layers:
        assert layer.moe is not None
        moe = layer.moe.model_copy(update={"zero_experts": zero, "unused_up_experts": zero})
        found.append(layer.model_copy(update={"mlp": mlp, "moe": moe, "experts_beside": True}))
        found.append(layer.model_copy(update={"mlp": mlp, "moe": None}))
    return found


def cycled_stacks(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Two stacks that run in turn (hrm_text): the low one ``L_cycles`` times, the high one once, ``H_cycles`` times.

    A config that ``transformers`` wrote counts every run in ``num_hidden_layers``.
    """
    stack, high, low = keys.optional("num_layers_per_stack"), keys.integer("H_cycles"), keys.integer("L_cycles")
    own = layers[: stack or len(layers)]
    again = [layer.model_copy(update={"reuses_weights": True}) for layer in own]
    runs = []
    for cycle in range(high):
        runs += (own if cycle == 0 else again) + again * (low - 1) + (own if cycle == 0 else again)
    return runs


def zaya_parts(keys: ClassKeys, hidden: int, layer: LayerSpec, index: int) -> tuple[PartSpec, ...]:
    """Convolutions over queries and keys, a router that is an MLP, scales on all residuals."""
    attention = softmax_of(layer)
    assert attention is not None
    wide, narrow = (
        (attention.num_heads + attention.num_kv_heads) * attention.head_dim,
        keys.integer("router_hidden_size"),
    )
    scales = [
        PartSpec(name=f"{block}_residual_scale", kind="scale", block=block, in_features=hidden, learned=4 * hidden)
        for block in ("attention", "mlp")
    ]
    between = [
        PartSpec(name=f"router_{name}", kind="projection", block="mlp", in_features=narrow, bias=True)
        for name in ("up", "down")
    ]
    return (
        PartSpec(
            name="qk_convolution",
            kind="convolution",
            in_features=wide,
            kernel=keys.integer("cca_time0"),
            bias=True,
            cut="heads",
        ),
        PartSpec(
            name="qk_head_convolution",
            kind="convolution",
            in_features=wide,
            kernel=keys.integer("cca_time1"),
            channels=attention.head_dim,
            bias=True,
            cut="heads",
        ),
        PartSpec(
            name="key_scale",
            kind="scale",
            in_features=attention.num_kv_heads * attention.head_dim,
            learned=attention.num_kv_heads,
            cut="heads",
        ),
        PartSpec(
            name="router_projection", kind="projection", block="mlp", in_features=hidden, out_features=narrow, bias=True
        ),
        *([PartSpec(name="router_scale", kind="scale", block="mlp", in_features=narrow)] if index else []),
        PartSpec(name="router_norm", kind="norm", block="mlp", in_features=narrow),
        *between,
        # The choice of no expert at all.
        PartSpec(name="router_skip", kind="projection", block="mlp", in_features=narrow, out_features=1),
        *scales,
    )


def zaya_router(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """The router scores a narrow state."""
    found = []
    for layer in layers:
        assert layer.moe is not None
        moe = layer.moe.model_copy(update={"router_input_size": keys.integer("router_hidden_size")})
        found.append(layer.model_copy(update={"moe": moe}))
    return found
