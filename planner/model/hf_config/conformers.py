"""Conformer towers: blocks of two half MLPs around attention and a convolution module (arXiv 2005.08100).

Shapes: ``transformers`` 5.23 modeling files.  A block is four parts with a norm each; the norm behind it is counted
beside the layers.  A clip is ``REFERENCE_FRAMES`` mel frames.
"""

from __future__ import annotations

import math

from planner.model.hf_config.audio_towers import REFERENCE_FRAMES, AudioTower
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.vision_towers import vision_layer
from planner.model.mixers.absent import AbsentMixerSpec
from planner.model.mixers.conv_module import ConvModuleSpec
from planner.model.mixers.window_cross import WindowCrossSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, NormKind, TowerRun, TowerSpec


def conformer_runs(
    layers: int,
    width: int,
    units: int,
    *,
    mlp: MlpSpec,
    attention: AttentionSpec,
    convolution: ConvModuleSpec,
    norm: NormKind = "layer",
    num_norms: tuple[int, int, int] = (1, 1, 1),
) -> tuple[TowerRun, ...]:
    """The parts of ``layers`` blocks: two MLPs, attention, and a convolution module, with their norms."""
    parts = (
        (2 * layers, LayerSpec(attention=AbsentMixerSpec(), mlp=mlp, norm=norm, num_norms=num_norms[0])),
        (layers, LayerSpec(attention=attention, norm=norm, num_norms=num_norms[1])),
        (layers, LayerSpec(attention=convolution, norm=norm, num_norms=num_norms[2])),
    )
    return tuple(TowerRun(count=count, layer=layer, hidden_size=width, units_per_item=units) for count, layer in parts)


def granite_tower(keys: ClassKeys) -> AudioTower:
    """Granite Speech: pairs of mel frames, attention within blocks with relative positions, a side output."""
    width, heads, layers = keys.width("hidden_dim"), keys.integer("num_heads"), keys.integer("num_layers")
    head_dim = keys.optional("dim_head") or divided_heads(keys.reader, "num_heads", width, heads)
    inner, inputs, out = width * keys.integer("feedforward_mult"), keys.integer("input_dim"), keys.integer("output_dim")
    context, positions = keys.integer("context_size"), keys.integer("max_pos_emb")
    if context > positions:
        keys.reader.refuse("context_size", f"must be at most max_pos_emb = {positions}, is {context}")
    attention = AttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        output_bias=True,
        causal=False,
        sliding_window=context,
    )
    convolution = ConvModuleSpec(
        width=width * keys.integer("conv_expansion_factor"), conv_kernel=keys.integer("conv_kernel_size"), vectors=2
    )
    # Two mel frames are one input, and a clip is whole blocks, to which attention would pad.
    units = max(REFERENCE_FRAMES // 2 // context, 1) * context
    runs = conformer_runs(
        layers,
        width,
        units,
        mlp=MlpSpec(intermediate_size=inner, gated=False, bias=True),
        attention=attention,
        convolution=convolution,
    )
    table = (2 * positions + 1) * head_dim
    # Scores of relative positions: as many products as scores of keys.
    relative = 2 * layers * units * context * heads * head_dim
    ends = inputs * width + width + 2 * width * out + out + width
    extra = ends + layers * (table + 2 * width)
    return AudioTower(width, inner, runs, units, extra, 2 * units * (inputs * width + 2 * width * out) + relative)


def query_projector(tower: AudioTower, keys: ClassKeys, inputs: int, window: int, rate: int, text: int) -> TowerSpec:
    """With a Q-Former behind it: ``window // rate`` learned queries for ``window`` frames of ``inputs`` features."""
    width, heads = keys.width("hidden_size"), keys.integer("num_attention_heads")
    head_dim = divided_heads(keys.reader, "num_attention_heads", width, heads)
    layers, inner = keys.integer("num_hidden_layers"), keys.width("intermediate_size")
    if keys.integer("encoder_hidden_size") != inputs:
        keys.reader.refuse("encoder_hidden_size", f"must equal the tower's width {inputs}")
    if keys.on("use_qformer_text_input"):
        keys.reader.refuse("use_qformer_text_input", "asks for queries that read text, which are not modelled")
    queries, windows = max(window // rate, 1), math.ceil(tower.units / window)
    plain = vision_layer(width, heads, inner, gated=False, norm="layer")
    own = plain.attention.model_copy(update={"sliding_window": queries})
    whole = plain.model_copy(update={"attention": own, "norm_placement": "post_residual"})
    cross = WindowCrossSpec(num_heads=heads, head_dim=head_dim, source_width=inputs, window=window, queries=queries)
    crossing = LayerSpec(attention=cross, norm="layer", num_norms=1, norm_placement="post_residual")
    crossed = math.ceil(layers / keys.integer("cross_attention_frequency"))
    # The first layer attends before the queries have seen a frame: once for all windows.
    parts = (
        (1, queries, LayerSpec(attention=own, norm="layer", num_norms=1, norm_placement="post_residual")),
        (1, windows * queries, whole.model_copy(update={"attention": AbsentMixerSpec(), "num_norms": 1})),
        (layers - 1, windows * queries, whole),
        (crossed, windows * queries, crossing),
    )
    runs = tuple(
        TowerRun(count=count, layer=layer, hidden_size=width, units_per_item=units)
        for count, units, layer in parts
        if count
    )
    spec = tower.spec(
        tokens=windows * queries,
        matmuls=width * text,
        parameters=queries * width + 2 * width + width * text + text,
    )
    return spec.model_copy(update={"runs": (*tower.runs, *runs)})
