"""Gemma 3n and Gemma 4: inputs of every layer, keys and values shared between layers, experts beside an MLP.

Shapes: ``transformers`` 5.23 ``models/gemma3n`` and ``models/gemma4``.  The last ``num_kv_shared_layers`` layers see
the keys and values of the last layer of their kind before them.  Every layer gets an input of its own from a second
token table (``hidden_size_per_layer_input`` features a layer), which stands before the first layer.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layer_forms import changed, softmax_of
from planner.model.hf_config.sparse_forms import Ends
from planner.model.spec import LayerSpec, MlpSpec, MoeSpec, PartSpec, ResidualSpec


def _shared(keys: ClassKeys, layers: list[LayerSpec]) -> list[bool]:
    """Which layers take the keys and values of an earlier one."""
    count = keys.optional("num_kv_shared_layers", minimum=0) or 0
    if count > len(layers):
        keys.reader.refuse("num_kv_shared_layers", f"must be at most {len(layers)} layers, is {count}")
        count = 0
    return [index >= len(layers) - count for index in range(len(layers))]


def layer_input_parts(keys: ClassKeys, hidden: int) -> tuple[PartSpec, ...]:
    """What a layer does with its own input: gate, product, projection, norm."""
    width = keys.optional("hidden_size_per_layer_input", minimum=0) or 0
    if not width:
        return ()
    return (
        PartSpec(name="input_gate", kind="projection", block="mlp", in_features=hidden, out_features=width),
        PartSpec(name="input_product", kind="gate", block="mlp", in_features=width),
        PartSpec(name="input_projection", kind="projection", block="mlp", in_features=width, out_features=hidden),
        PartSpec(name="input_norm", kind="norm", block="mlp", in_features=hidden),
    )


def _layer_inputs(keys: ClassKeys, hidden: int, num_layers: int) -> tuple[PartSpec, ...]:
    """The second token table and the projection of the first, for all layers at once."""
    width = keys.optional("hidden_size_per_layer_input", minimum=0) or 0
    rows = keys.optional("vocab_size_per_layer_input", minimum=0) or 0
    if not width:
        return ()
    features = width * num_layers
    return (
        PartSpec(name="input_table", kind="table", in_features=features, learned=rows * features),
        PartSpec(name="input_from_embedding", kind="projection", in_features=hidden, out_features=features),
        PartSpec(name="input_from_embedding_norm", kind="norm", in_features=features, learned=width),
    )


def gemma4_layers(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Full layers have wider heads and perhaps other key-value heads; MLPs of sharing layers may be twice as wide."""
    both, wide = keys.on("attention_k_eq_v"), keys.on("use_double_wide_mlp")
    sizes = _full_sizes(keys, both, layers)
    moe, extra = _gemma4_experts(keys, hidden)
    found = []
    for index, (layer, reuses) in enumerate(zip(layers, _shared(keys, layers), strict=True)):
        attention = softmax_of(layer)
        assert attention is not None
        full = attention.sliding_window is None
        heads, kv_heads = sizes[index] if full else (attention.head_dim, attention.num_kv_heads)
        fields = {"head_dim": heads, "v_head_dim": heads, "num_kv_heads": kv_heads, "qk_rope_head_dim": None}
        formed = changed(layer, **fields, reuses_key_values=reuses, keys_are_values=both and full and not reuses)
        update: dict[str, object] = {"parts": (*extra, *layer_input_parts(keys, hidden))}
        if wide and reuses and layer.mlp is not None:
            update["mlp"] = MlpSpec(intermediate_size=2 * layer.mlp.intermediate_size, gated=True)
        if moe is not None:
            update |= {"moe": moe, "experts_beside": True}
        found.append(formed.model_copy(update=update))
    return found


def _full_sizes(keys: ClassKeys, both: bool, layers: list[LayerSpec]) -> list[tuple[int, int]]:
    """Head width and key-value heads of every layer, if it sees all tokens."""
    kv_heads = layers[0].attention.num_kv_heads
    width = keys.reader.integer("global_head_dim", default=512)
    wide = keys.reader.optional_integer("num_global_key_value_heads")
    sizes = [(width, wide if both and wide else kv_heads)] * len(layers)
    if not isinstance(keys.reader.data.get("per_layer_config"), dict):
        return sizes
    listed = keys.reader.child("per_layer_config")
    sizes = [(layers[0].attention.head_dim, kv_heads)] * len(layers)
    for name in listed.data:
        if not name.isdigit() or int(name) >= len(layers):
            listed.refuse(name[:40], f"must be the number of one of {len(layers)} layers")
            continue
        child = listed.child(name)
        head_dim = child.integer("head_dim", default=layers[0].attention.head_dim)
        sizes[int(name)] = (head_dim, child.integer("num_key_value_heads", default=kv_heads))
    return sizes


def _gemma4_experts(keys: ClassKeys, hidden: int) -> tuple[MoeSpec | None, tuple[PartSpec, ...]]:
    """Experts beside the MLP, with norms and scales of their own."""
    count, top_k, width = (keys.optional(key) for key in ("num_experts", "top_k_experts", "moe_intermediate_size"))
    if not keys.on("enable_moe_block"):
        return None, ()
    if count is None or width is None or top_k is None or top_k > count:
        keys.reader.refuse("top_k_experts", "with num_experts and moe_intermediate_size is required with experts")
        return None, ()
    norms = [
        PartSpec(name=f"{name}_norm", kind="norm", block="mlp", in_features=hidden)
        for name in ("experts_input", "experts_output", "mlp_output")
    ]
    scales = [
        PartSpec(name="router_input_scale", kind="scale", block="mlp", in_features=hidden),
        PartSpec(name="expert_scale", kind="scale", block="mlp", in_features=count),
    ]
    moe = MoeSpec(num_experts=count, top_k=top_k, expert_intermediate_size=width)
    return moe, (*norms, *scales)


def gemma4_ends(keys: ClassKeys, hidden: int) -> Ends:
    """The table of layers' inputs."""
    return _layer_inputs(keys, hidden, keys.integer("num_hidden_layers")), ()


def gemma3n_width(keys: ClassKeys) -> int:
    """Width of the first layer's MLP: one number, or one a layer."""
    if isinstance(keys.reader.data.get("intermediate_size"), list):
        given = keys.reader.integers("intermediate_size", [])
        return given[0] if given and given[0] else 1
    return keys.integer("intermediate_size")


def gemma3n_layers(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Alternating updates, a low-rank path beside attention, inputs of every layer, shared keys and values."""
    widths = [layer.mlp.intermediate_size if layer.mlp else 1 for layer in layers]
    if isinstance(keys.reader.data.get("intermediate_size"), list):
        given = keys.reader.integers("intermediate_size", widths)
        if len(given) == len(layers) and all(given):
            widths = given
        else:
            keys.reader.refuse("intermediate_size", f"must be one number or {len(layers)}, one a layer")
    parts = (*_gemma3n_parts(keys, hidden), *layer_input_parts(keys, hidden))
    return [
        changed(layer, reuses_key_values=reuses).model_copy(
            update={"mlp": MlpSpec(intermediate_size=width, gated=True), "parts": parts}
        )
        for layer, reuses, width in zip(layers, _shared(keys, layers), widths, strict=True)
    ]


def _gemma3n_parts(keys: ClassKeys, hidden: int) -> tuple[PartSpec, ...]:
    streams, rank = keys.integer("altup_num_inputs"), keys.integer("laurel_rank")
    return (
        PartSpec(name="stream_router_norm", kind="norm", in_features=hidden),
        PartSpec(name="stream_router", kind="projection", in_features=hidden, out_features=streams),
        PartSpec(name="prediction", kind="projection", in_features=streams, out_features=streams * streams),
        PartSpec(name="laurel_down", kind="projection", in_features=hidden, out_features=rank),
        PartSpec(name="laurel_up", kind="projection", in_features=rank, out_features=hidden),
        PartSpec(name="laurel_norm", kind="norm", in_features=hidden),
        # The same router once more, for the correction behind the layer.
        PartSpec(
            name="stream_router_again",
            kind="projection",
            block="mlp",
            in_features=hidden,
            out_features=streams,
            learned=0,
        ),
        PartSpec(name="correction", kind="projection", block="mlp", in_features=streams, out_features=streams),
        PartSpec(name="correction_scale", kind="scale", block="mlp", in_features=hidden),
    )


def gemma3n_streams(keys: ClassKeys) -> ResidualSpec:
    """Alternating updates of ``altup_num_inputs`` streams."""
    return ResidualSpec(kind="altup", streams=max(keys.integer("altup_num_inputs"), 2), bias=False)


def gemma3n_ends(keys: ClassKeys, hidden: int) -> Ends:
    """The table of layers' inputs; a projection for every further stream, and back."""
    others = range(1, keys.integer("altup_num_inputs"))
    entry = [PartSpec(name=f"stream_{n}", kind="projection", in_features=hidden) for n in others]
    leave = [PartSpec(name=f"stream_{n}_back", kind="projection", in_features=hidden) for n in others]
    return (*_layer_inputs(keys, hidden, keys.integer("num_hidden_layers")), *entry), tuple(leave)
