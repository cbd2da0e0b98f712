"""Encoders for long sources: attention within windows or blocks, and what stands for the whole beside them.

Shapes: ``transformers`` 5.23 modeling_led.py, modeling_pegasus_x.py.
"""

from __future__ import annotations

from planner.model.ends import AddedTable
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import windowed
from planner.model.layer_parts import PartSpec
from planner.model.layer_rows import RowsSpec
from planner.model.mixers.local_global import LocalGlobalSpec
from planner.model.spec import AttentionSpec, LayerSpec


def longformer(keys: ClassKeys, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Attention within a window (arXiv 2004.05150, section 3.1), of each layer its own where the key lists them.

    The class multiplies overlapping chunks: of a window ``w`` a token meets ``2 w`` keys and ``1.5 w`` values, of
    which it masks what lies outside; the mean of the two is what is counted.  Which tokens attend to all is said by a
    batch, not by a config: without one the projections for such tokens are held, and no token runs through them.
    """
    said, count = keys.reader.data.get("attention_window"), len(layers)
    if isinstance(said, list):
        windows = keys.reader.integers("attention_window", [])
    else:
        windows = [keys.integer("attention_window")] * count
    if len(windows) != count or any(window <= 0 or window % 2 for window in windows):
        keys.reader.refuse("attention_window", f"must be even and above 0, for all or for each of the {count} layers")
        windows = [2] * count
    return [_longformer_layer(layer, window) for layer, window in zip(layers, windows, strict=True)]


def _longformer_layer(layer: LayerSpec, window: int) -> LayerSpec:
    assert isinstance(layer.attention, AttentionSpec)
    width = layer.attention.num_heads * layer.attention.head_dim
    held = tuple(
        PartSpec(name=f"global_{name}", kind="held", in_features=width, out_features=width, bias=True, cut="output")
        for name in ("queries", "keys", "values")
    )
    return layer.model_copy(update={"attention": windowed(layer.attention, 7 * window // 4), "parts": held})


def with_global_tokens(keys: ClassKeys, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Blocks beside learned tokens; every second layer moves its blocks by half of one, which changes no sizes."""
    keys.on("stagger_local_blocks")
    tokens, block = keys.integer("num_global_tokens"), keys.integer("block_size")
    heads, head_dim = layers[0].attention.num_heads, layers[0].attention.head_dim
    mixer = LocalGlobalSpec(num_heads=heads, head_dim=head_dim, window=block, global_tokens=tokens)
    return [layer.model_copy(update={"attention": mixer, "rows": RowsSpec(further=tokens)}) for layer in layers]


def global_table(keys: ClassKeys, width: int) -> list[AddedTable]:
    """The learned tokens."""
    return [AddedTable(name="global_token", rows=keys.integer("num_global_tokens"), width=width, looked_up=False)]
