"""What UDOP adds to a T5: places of tokens on a page, and patches of its image in the encoder's sequence.

Shapes: ``transformers`` 5.23 modeling_udop.py.
"""

from __future__ import annotations

from typing import Any

from planner.model.ends import AddedTable
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.patch_towers import side
from planner.model.spec import LayerSpec, VisionSpec

_BUCKETS = 32
"""Of a bias whose entry says nothing; the config's own number is that of the first layer's table."""
_BIASES = [{"type": "1d"}, {"type": "horizontal"}, {"type": "vertical"}]


def udop_tables(keys: ClassKeys, hidden: int) -> tuple[list[AddedTable], list[AddedTable]]:
    """Tables of the encoder, and those that the decoder holds and does not read.

    The bias by distance in the sequence is the first layer's table.  Both stacks hold one for distances across the page
    and one for distances down it; the decoder holds a projection of patches besides.
    """
    rows, heads = keys.integer("max_2d_position_embeddings"), keys.integer("num_heads")
    said = keys.reader.data.get("relative_bias_args") or _BIASES
    each = said if isinstance(said, list) and all(isinstance(item, dict) for item in said) else []
    kinds = [item.get("type") for item in each]
    if not kinds or kinds[0] != "1d" or set(kinds[1:]) - {"horizontal", "vertical"}:
        keys.reader.refuse("relative_bias_args", "must list 1d, then horizontal or vertical")
        each = _BIASES
    biases = [
        AddedTable(name=f"{item['type']}_bias_{index}", rows=_buckets(item), width=heads, looked_up=False)
        for index, item in enumerate(each[1:])
    ]
    places = [AddedTable(name=f"source_{axis}", rows=rows, width=hidden) for axis in ("across", "down")]
    patch = keys.integer("num_channels") * side(keys.reader, "patch_size", 16) ** 2
    held = AddedTable(name="held_patches", rows=patch + 1, width=hidden, looked_up=False)
    return [*places, *biases], [*biases, held]


def _buckets(item: dict[str, Any]) -> int:
    rows = item.get("num_buckets", _BUCKETS)
    return rows if isinstance(rows, int) and rows > 0 else _BUCKETS


def udop_patches(keys: ClassKeys, layer: LayerSpec, hidden: int) -> VisionSpec:
    """Patches projected into the encoder's sequence: no layers of their own."""
    patch, image = side(keys.reader, "patch_size", 16), side(keys.reader, "image_size", 224)
    if patch > image:
        keys.reader.refuse("patch_size", f"must not exceed the image size {image}, is {patch}")
    patches, weights = max(image // patch, 1) ** 2, keys.integer("num_channels") * patch * patch * hidden
    return VisionSpec(
        hidden_size=hidden,
        num_layers=0,
        layer=layer,
        patches_per_image=patches,
        tokens_per_image=patches,
        extra_parameters=weights + hidden,
        projector_flops_per_image=2 * patches * weights,
    )
