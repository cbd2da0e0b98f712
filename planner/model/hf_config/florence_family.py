"""Florence-2: a DaViT tower whose tokens stand before the text in the source of a BART.

Shapes: ``transformers`` 5.23 modeling_florence2.py.  A layer of DaViT (arXiv 2204.03645, section 3) attends within
windows of the image, the next between channels: the product of ``d`` channels of a group takes as many FLOPs as
attention of every token to ``d`` others, and is counted as that.
"""

from __future__ import annotations

from planner.model.hf_config.bart_family import import_bart
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_parts import Part, convolution, linear, norm, table
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.vision_towers import vision_layer
from planner.model.layer_parts import PartSpec
from planner.model.spec import LayerSpec, ModelSpec, TowerRun, TowerSpec

VISION = "florence_vision"
_IMAGE_SIDE = 768
"""Pixels a side of the image that the processor of Florence-2 gives; no key of the config says it."""
_STAGES = {
    "depths": [1, 1, 9, 1],
    "patch_size": [7, 3, 3, 3],
    "patch_stride": [4, 2, 2, 2],
    "embed_dim": [128, 256, 512, 1024],
    "num_heads": [4, 8, 16, 32],
    "num_groups": [4, 8, 16, 32],
}
_LOCAL = 9
"""Places of the convolutions before each branch of a layer, one channel at a time."""


def import_florence2(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Florence-2 with a BART as language model."""
    text = reader.child("text_config", {"model_type": "bart"})
    if (kind := text.text("model_type", default="bart")) != "bart":
        text.refuse("model_type", f"{kind[:40]!r} is not read in this place", "read is bart")
    model = import_bart(text, name, "bart")
    tower = _tower(ClassKeys(reader.child("vision_config"), VISION), model.hidden_size)
    if reader.boolean("tie_word_embeddings", default=True) != model.tie_embeddings:
        reader.refuse("tie_word_embeddings", "must be that of the language model")
    return model.model_copy(update={"family": "florence2", "further_towers": (tower,)})


def _tower(keys: ClassKeys, hidden: int) -> TowerSpec:
    said = {key: keys.reader.integers(key, default) for key, default in _STAGES.items()}
    if len({len(each) for each in said.values()}) != 1 or any(0 in each for each in said.values()):
        keys.reader.refuse("depths", f"and {', '.join(list(_STAGES)[1:])} must be as many numbers above 0")
        said = _STAGES
    side, inputs, front, runs = _IMAGE_SIDE, keys.integer("in_channels"), Part(), list[TowerRun]()
    for stage, width in enumerate(said["embed_dim"]):
        kernel, stride = said["patch_size"][stage], said["patch_stride"][stage]
        side = max(side // stride, 1)
        front += convolution(inputs, width, kernel**2, side**2, bias=True) + norm(inputs if stage else width)
        inputs = width
        heads, groups = said["num_heads"][stage], said["num_groups"][stage]
        for key, parts in (("num_heads", heads), ("num_groups", groups)):
            if width % parts:
                keys.reader.refuse(key, f"must divide the widths of their stages, {width} by {parts}")
        windows = keys.integer("window_size") ** 2, max(width // groups, 1)
        runs += [
            TowerRun(
                count=said["depths"][stage],
                layer=_layer(keys, width, heads, window),
                hidden_size=width,
                units_per_item=side**2,
            )
            for window in windows
        ]
    projected = keys.width("projection_dim")
    if projected != hidden:
        keys.reader.refuse("projection_dim", f"must be the width of the language model, {hidden}, is {projected}")
    tokens, rows = side**2 + 1, keys.integer("max_position_embeddings")
    ends = front + linear(inputs, projected, tokens, bias=False) + norm(projected) + table(rows, inputs)
    return TowerSpec(
        modality="vision",
        runs=tuple(runs),
        tokens_per_item=tokens,
        extra_parameters=ends.parameters,
        ends_flops_per_item=ends.flops,
    )


def _layer(keys: ClassKeys, width: int, heads: int, window: int) -> LayerSpec:
    """Attention within ``window`` and an MLP, each behind a convolution of every channel by itself."""
    inner = round(width * keys.number("mlp_ratio", 4.0))
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    attention = layer.attention.model_copy(update={"sliding_window": window, "qkv_bias": keys.on("qkv_bias")})
    local = tuple(
        PartSpec(
            name=f"{block}_convolution", kind="convolution", block=block, in_features=width, kernel=_LOCAL, bias=True
        )
        for block in ("attention", "mlp")
    )
    return layer.model_copy(update={"attention": attention, "parts": local})
