"""Vision transformers as tables: ``Vit`` says how one kind of tower stands in its config, ``read_vit`` reads it.

Defaults are those of the ``transformers`` class (``class_defaults.json``).  A tower that takes any resolution is given
a square image of ``REFERENCE_IMAGE_SIDE`` pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Switch
from planner.model.hf_config.image_parts import Part, attention, linear, mlp, norm, scores, table
from planner.model.hf_config.reader import MAX_LAYERS
from planner.model.hf_config.vision_towers import REFERENCE_IMAGE_SIDE
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, NormKind, VisionSpec

Rows = Callable[[ClassKeys, int], int]
"""Rows of the table of positions, from the tower's keys and its patches (class tokens not among them)."""
Windows = Callable[[ClassKeys, int], tuple[int, int | None]]
"""From the tower's keys and layers: how many layers attend within windows, and the patches of one."""


@dataclass(frozen=True, slots=True)
class ImageTower:
    """A tower without projector: equal layers over ``patches`` and ``extra_tokens``, and what is not a layer."""

    keys: ClassKeys
    width: int
    num_layers: int
    layer: LayerSpec
    patches: int
    rest: Part
    extra_tokens: int = 0
    rope: bool = False
    num_windowed_layers: int = 0
    window_patches: int | None = None

    def spec(self, tokens: int, *projector: Part) -> VisionSpec:
        """With a projector that gives ``tokens`` tokens an image."""
        parts = [self.rest, *projector]
        return VisionSpec(
            hidden_size=self.width,
            num_layers=self.num_layers,
            layer=self.layer,
            rope=self.rope,
            patches_per_image=self.patches + self.extra_tokens,
            tokens_per_image=max(tokens, 1),
            extra_parameters=sum(part.parameters for part in parts),
            projector_flops_per_image=sum(part.flops for part in parts),
            num_windowed_layers=self.num_windowed_layers,
            window_patches=self.window_patches,
        )


def grid(_: ClassKeys, patches: int) -> int:
    """A position a patch."""
    return patches


def no_rows(_: ClassKeys, __: int) -> int:
    """No table of positions."""
    return 0


def keyed(key: str) -> Rows:
    """As many rows as a key says."""
    return lambda keys, _: keys.integer(key)


def largest_image(key: str, more: int = 0) -> Rows:
    """A position a patch of the largest image, whose side is at ``key``."""
    return lambda keys, _: max(keys.integer(key) // keys.integer("patch_size"), 1) ** 2 + more


def area(first: str, second: str | None = None) -> Rows:
    """A row a place of a grid whose sides are at the keys (one key: a square)."""
    return lambda keys, _: keys.integer(first) * keys.integer(second or first)


def listed_windows(keys: ClassKeys, layers: int) -> tuple[int, int | None]:
    """Layers that ``layer_types`` names, or all but every fourth and the last; a window is as wide as the table."""
    words = keys.reader.strings("layer_types")
    if words is None:
        words = ["window_attention" if (i + 1) % 4 and i != layers - 1 else "full_attention" for i in range(layers)]
    if len(words) != layers or set(words) - {"window_attention", "full_attention"}:
        keys.reader.refuse("layer_types", f"must hold window_attention or full_attention for each of {layers} layers")
    return min(words.count("window_attention"), layers), keys.integer("pos_emb_height") * keys.integer("pos_emb_width")


@dataclass(frozen=True, slots=True)
class Vit:
    """One kind of vision transformer: names of keys, then its structure."""

    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    kv_heads: str | None = None
    head_dim: str | None = None
    inner: str = "intermediate_size"
    """Key of the MLP's width; ``mlp_ratio`` times the width where it is that key, or null."""
    channels: str | int = "num_channels"
    frames: str | None = None
    """Key of the frames that one patch spans."""
    class_tokens: int = 0
    has_patches: bool = True
    """Whether it embeds patches itself, not features of another tower."""
    flat: tuple[str, str] | None = None
    """Keys of the patches of an image and of the features of one, where patches come flattened, in no grid."""
    patch_bias: bool = True
    rows: Rows = grid
    any_size: bool = False
    """Whether it takes any resolution, so that ``image_size`` says nothing about one image."""
    entry_norm: bool = False
    exit_norm: bool = True
    norm: NormKind = "layer"
    num_norms: int = 2
    gated: bool = False
    qkv_bias: Switch = True
    output_bias: Switch = True
    mlp_bias: Switch = True
    qk_norm: Literal["none", "per_head", "full_width"] = "none"
    qk_norm_key: Switch = True
    qk_norm_bias: bool = False
    pooling_head: Switch = False
    """SigLIP's head: a learned query attends to all patches, then an MLP; the class runs it for every image."""
    windows: Windows | None = None
    """Layers that attend within windows."""
    layer_scales: int = 0
    """Learned vectors as wide as a layer that scale its branches."""
    rope: bool = False


def read_vit(keys: ClassKeys, vit: Vit, *, merge: int = 1) -> ImageTower:
    """Read one tower; the grid of an image of any size is a multiple of ``merge`` patches a side."""
    width, layers = keys.width("hidden_size"), keys.integer(vit.layers)
    if layers > MAX_LAYERS:
        keys.reader.refuse(vit.layers, f"must be at most {MAX_LAYERS}, is {layers}")
        layers = 1
    inner = _inner(keys, vit, width)
    layer = _layer(keys, vit, width, inner)
    patches, entry = _entry(keys, vit, width, merge)
    norms = norm(width, bias=vit.norm == "layer").times(vit.entry_norm + vit.exit_norm)
    rest = entry + table(vit.class_tokens, width) + norms + table(layers * vit.layer_scales, width)
    if keys.on(vit.pooling_head):
        rest += pooling_head(width, inner, patches)
    windowed, window = vit.windows(keys, layers) if vit.windows else (0, None)
    return ImageTower(
        keys=keys,
        width=width,
        num_layers=layers,
        layer=layer,
        patches=patches,
        rest=rest,
        extra_tokens=vit.class_tokens,
        rope=vit.rope,
        num_windowed_layers=windowed,
        window_patches=window,
    )


def _inner(keys: ClassKeys, vit: Vit, width: int) -> int:
    """Width of the MLPs; a config that was written by the class holds it beside the ratio that gives it."""
    ratio = vit.inner == "mlp_ratio"
    given = keys.optional("intermediate_size") if ratio and "intermediate_size" in keys.defaults else None
    inner = None if ratio else keys.optional(vit.inner)
    if inner is None and "mlp_ratio" in keys.defaults:
        inner = max(int(width * keys.number("mlp_ratio", 4.0)), 1)
    elif inner is None:
        inner = keys.width(vit.inner)
    if given is not None and "intermediate_size" in keys.reader.data and given != inner:
        keys.reader.refuse("intermediate_size", f"must be {inner}, the width times mlp_ratio, is {given}")
    return inner


def pooling_head(width: int, inner: int, patches: int) -> Part:
    """A learned query over all patches, and an MLP on what it finds."""
    return table(1, width) + attention(width, 1, patches) + norm(width) + mlp(width, inner, width, 1)


def square(keys: ClassKeys, key: str) -> int:
    """Pixels a side: a number, or a list of two equal ones."""
    value = keys.reader.data.get(key, keys.defaults.get(key))
    if isinstance(value, list) and value:
        sides = keys.reader.integers(key, value)
        if len(set(sides)) != 1 or sides[0] == 0:
            keys.reader.refuse(key, f"must be equal sides above 0, is {value}")
        return max(sides[0], 1)
    return keys.integer(key)


def _entry(keys: ClassKeys, vit: Vit, width: int, merge: int) -> tuple[int, Part]:
    """Patches of one image, and what embeds them."""
    if vit.flat is not None:
        patches, features = (keys.integer(key) for key in vit.flat)
        return patches, linear(features, width, patches, bias=vit.patch_bias) + table(vit.rows(keys, patches), width)
    patch = square(keys, "patch_size") if vit.has_patches or "patch_size" in keys.defaults else 1
    if vit.any_size:
        if "image_size" in keys.defaults:
            square(keys, "image_size")
        patches = max(REFERENCE_IMAGE_SIDE // patch // merge, 1) ** 2 * merge**2
        rows = square(keys, "image_size") // patch if vit.rows is grid else 0
        positions = rows**2 if vit.rows is grid else vit.rows(keys, patches)
    else:
        side = square(keys, "image_size") // patch
        if side == 0:
            keys.reader.refuse("patch_size", f"must not exceed the image size, is {patch}")
        patches = max(side, 1) ** 2
        positions = vit.rows(keys, patches)
    rows_of_classes = vit.class_tokens if positions else 0
    learned = table(positions + rows_of_classes, width)
    if not vit.has_patches:
        return patches, learned
    channels = vit.channels if isinstance(vit.channels, int) else keys.integer(vit.channels)
    pixels = channels * patch * patch * (square(keys, vit.frames) if vit.frames else 1)
    return patches, linear(pixels, width, patches, bias=vit.patch_bias) + learned


def _layer(keys: ClassKeys, vit: Vit, width: int, inner: int) -> LayerSpec:
    reader, heads = keys.reader, keys.integer(vit.heads)
    given = keys.optional(vit.head_dim) if vit.head_dim else None
    if given is None and width % heads:
        reader.refuse(vit.heads, f"must divide the hidden size {width}, is {heads}")
    kv_heads = (keys.optional(vit.kv_heads) if vit.kv_heads else None) or heads
    if heads % kv_heads:
        reader.refuse(vit.kv_heads or vit.heads, f"must divide {vit.heads} = {heads}, is {kv_heads}")
        kv_heads = heads
    head_dim = given or max(width // heads, 1)
    normed = vit.qk_norm != "none" and keys.on(vit.qk_norm_key)
    softmax = AttentionSpec(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=keys.on(vit.qkv_bias),
        output_bias=keys.on(vit.output_bias),
        qk_norm=vit.qk_norm if normed else "none",
        qk_norm_bias=normed and vit.qk_norm_bias,
        causal=False,
    )
    network = MlpSpec(intermediate_size=inner, gated=vit.gated, bias=keys.on(vit.mlp_bias))
    return LayerSpec(attention=softmax, mlp=network, norm=vit.norm, num_norms=vit.num_norms)


def attention_part(tower: ImageTower, positions: int) -> Part:
    """Attention and the norms of one more layer of a tower's kind over ``positions``."""
    core = tower.layer.attention
    assert isinstance(core, AttentionSpec)  # every Vit has it
    inner = core.num_heads * core.head_dim
    keys = core.num_kv_heads * core.head_dim
    return (
        linear(tower.width, inner + 2 * keys, positions, bias=core.qkv_bias)
        + scores(positions, positions, inner)
        + linear(inner, tower.width, positions, bias=core.output_bias)
        + Part(2 * core.head_dim if core.qk_norm == "per_head" else 0)
        + norm(tower.width, bias=tower.layer.norm == "layer").times(2)
    )


def layer_part(tower: ImageTower, positions: int) -> Part:
    """One more layer of a tower's kind over ``positions``, counted beside its equal layers."""
    network = tower.layer.mlp
    assert network is not None  # every Vit has one
    return attention_part(tower, positions) + mlp(
        tower.width,
        network.intermediate_size,
        tower.width,
        positions,
        gated=network.gated,
        bias=network.bias,
    )
