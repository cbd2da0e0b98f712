"""Vision towers of the newer families: one function a tower, from its config to a ``Tower``.

Shapes: ``transformers`` 5.23 modeling files.  A tower that takes any resolution is given a square image of
``REFERENCE_IMAGE_SIDE`` pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.model.hf_config.layers import divided_heads, read_num_layers, read_width
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.vision_towers import REFERENCE_IMAGE_SIDE, vision_layer
from planner.model.spec import LayerSpec, VisionSpec


@dataclass(frozen=True, slots=True)
class Tower:
    """A tower without projector: its layers, the patches of one image, and what is not a layer."""

    width: int
    num_layers: int
    layer: LayerSpec
    patches: int
    patch_matmul: int
    """Weights of the patch embedding."""
    extra_parameters: int
    """Everything that is not a layer, the patch embedding among it."""
    rope: bool = False
    merge: int = 1
    """Patches a side that become one token."""

    def spec(self, *, tokens: int, matmuls: int, parameters: int) -> VisionSpec:
        """With a projector of ``parameters``, of which ``matmuls`` meet each of the ``tokens``."""
        return VisionSpec(
            hidden_size=self.width,
            num_layers=self.num_layers,
            layer=self.layer,
            rope=self.rope,
            patches_per_image=self.patches,
            tokens_per_image=max(tokens, 1),
            extra_parameters=self.extra_parameters + parameters,
            projector_flops_per_image=2 * self.patches * self.patch_matmul + 2 * max(tokens, 1) * matmuls,
        )


def side(reader: ConfigReader, key: str, default: int) -> int:
    """Pixels a side: a number, or a list of two equal ones."""
    value = reader.data.get(key)
    if isinstance(value, list) and value and all(each == value[0] for each in value):
        reader.integers(key, [])
        return int(value[0]) if isinstance(value[0], int) and value[0] > 0 else default
    return reader.integer(key, default=default)


def _sizes(reader: ConfigReader, *, width: int, heads: int, inner: int, layers: int) -> tuple[int, int, int, int]:
    width = read_width(reader, "hidden_size", default=width)
    heads = reader.integer("num_heads", "num_attention_heads", default=heads)
    divided_heads(reader, "num_heads", width, heads)
    inner = read_width(reader, "intermediate_size", default=inner)
    return width, heads, inner, read_num_layers(reader, "depth", "num_hidden_layers", default=layers)


def _free_patches(patch: int, merge: int) -> int:
    return max(REFERENCE_IMAGE_SIDE // patch // merge, 1) ** 2 * merge**2


def _without_bias(layer: LayerSpec, *, qkv: bool = False, output: bool = False, mlp: bool = False) -> LayerSpec:
    attention = layer.attention.model_copy(update={"qkv_bias": qkv, "output_bias": output})
    kept = layer.mlp.model_copy(update={"bias": mlp}) if layer.mlp else None
    return layer.model_copy(update={"attention": attention, "mlp": kept})


def qwen3_tower(reader: ConfigReader, text_width: int, *, deepstack: bool = True) -> VisionSpec:
    """Qwen3-VL: learned positions, a merger at the end and after the layers of ``deepstack_visual_indexes``.

    Without ``deepstack`` (Qwen3.5) only the one at the end.
    """
    width, heads, inner, layers = _sizes(reader, width=1152, heads=16, inner=4304, layers=27)
    patch, merge = reader.integer("patch_size", default=16), reader.integer("spatial_merge_size", default=2)
    frames, channels = reader.integer("temporal_patch_size", default=2), reader.integer("in_channels", default=3)
    out = read_width(reader, "out_hidden_size", default=3584)
    if out != text_width:
        reader.refuse("out_hidden_size", f"must equal the language model's hidden size {text_width}, is {out}")
    positions = reader.integer("num_position_embeddings", default=2304)
    deep = len(reader.integers("deepstack_visual_indexes", [8, 16, 24])) if deepstack else 0
    merged, embedding = width * merge**2, channels * frames * patch * patch * width
    matmuls = merged * (merged + out)
    tower = Tower(
        width=width,
        num_layers=layers,
        layer=vision_layer(width, heads, inner, gated=False, norm="layer"),
        patches=_free_patches(patch, merge),
        patch_matmul=embedding,
        extra_parameters=embedding + width + positions * width,
        rope=True,
    )
    parameters = (1 + deep) * (matmuls + merged + out) + 2 * width + deep * 2 * merged
    return tower.spec(tokens=tower.patches // merge**2, matmuls=(1 + deep) * matmuls, parameters=parameters)


def glm4v_tower(reader: ConfigReader, text_width: int) -> VisionSpec:
    """GLM-4.5V: learned positions, gated layers without bias, a convolution that merges patches, a gated merger."""
    width, heads, inner, layers = _sizes(reader, width=1536, heads=12, inner=13696, layers=24)
    patch, merge = reader.integer("patch_size", default=14), reader.integer("spatial_merge_size", default=2)
    frames, channels = reader.integer("temporal_patch_size", default=2), reader.integer("in_channels", default=3)
    out = read_width(reader, "out_hidden_size", default=4096)
    if out != text_width:
        reader.refuse("out_hidden_size", f"must equal the language model's hidden size {text_width}, is {out}")
    positions = max(reader.integer("image_size", default=336) // patch, 1) ** 2
    embedding, bias = channels * frames * patch * patch * width, reader.boolean("attention_bias", default=False)
    layer = vision_layer(width, heads, out, gated=True, norm="rms")
    matmuls = merge**2 * width * out + out * out + 3 * out * inner
    tower = Tower(
        width=width,
        num_layers=layers,
        layer=_without_bias(layer, qkv=bias),
        patches=_free_patches(patch, merge),
        patch_matmul=embedding,
        extra_parameters=embedding + width + positions * width + 2 * width,
        rope=True,
    )
    return tower.spec(tokens=tower.patches // merge**2, matmuls=matmuls, parameters=matmuls + out + 2 * out)


def pixtral_tower(reader: ConfigReader) -> Tower:
    """Pixtral: rotary positions, gated layers without biases."""
    width, heads, inner, layers = _sizes(reader, width=1024, heads=16, inner=4096, layers=24)
    patch, channels = reader.integer("patch_size", default=16), reader.integer("num_channels", default=3)
    head_dim = reader.optional_integer("head_dim") or width // heads
    if head_dim * heads != width:
        reader.refuse("head_dim", f"must be {width} / {heads}, is {head_dim}")
    embedding = channels * patch * patch * width
    layer = _without_bias(vision_layer(width, heads, inner, gated=True, norm="rms"))
    reader.integer("image_size", default=1024)
    return Tower(width, layers, layer, _free_patches(patch, 2), embedding, embedding + width, rope=True)


def intern_tower(reader: ConfigReader, *, attention_bias: bool) -> Tower:
    """InternViT: class token, learned positions, two scales a layer."""
    width, heads, inner, layers = _sizes(reader, width=1024, heads=16, inner=4096, layers=24)
    patch, channels = side(reader, "patch_size", 14), reader.integer("num_channels", default=3)
    patches = max(side(reader, "image_size", 448) // patch, 1) ** 2
    rms = reader.text("norm_type", default="layer_norm") == "rms_norm"
    layer = vision_layer(width, heads, inner, gated=False, norm="rms" if rms else "layer")
    bias = reader.boolean("attention_bias", default=attention_bias)
    layer = _without_bias(layer, qkv=bias, output=True, mlp=True)
    if reader.boolean("use_qk_norm", default=False):
        attention = layer.attention.model_copy(update={"qk_norm": "full_width"})
        layer = layer.model_copy(update={"attention": attention})
    embedding = channels * patch * patch * width
    extra = embedding + 2 * width + layers * 2 * width
    if reader.boolean("use_absolute_position_embeddings", default=True):
        extra += (patches + 1) * width
    extra += width if reader.boolean("use_mask_token", default=False) else 0
    extra += 0 if reader.boolean("use_mean_pooling", default=True) else 2 * width
    return Tower(width, layers, layer, patches + 1, embedding, extra)


def kimi_tower(reader: ConfigReader) -> Tower:
    """Kimi K2.5: a table of positions, layer norms, biases everywhere."""
    width, heads, inner, layers = _sizes(reader, width=1152, heads=16, inner=4304, layers=27)
    patch = reader.integer("patch_size", default=14)
    rows = reader.integer("pos_emb_height", default=64) * reader.integer("pos_emb_width", default=64)
    merge = reader.integers("merge_kernel_size", [2, 2])
    embedding = 3 * patch * patch * width
    extra = embedding + width + rows * width + 2 * width
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    tower = Tower(width, layers, layer, _free_patches(patch, merge[0]), embedding, extra, rope=True)
    return replace(tower, merge=merge[0])


def llama4_tower(reader: ConfigReader) -> tuple[Tower, int]:
    """Llama 4: class token, learned positions, an adapter after the pixel shuffle; and the adapter's weights."""
    width, heads, inner, layers = _sizes(reader, width=768, heads=16, inner=5632, layers=34)
    patch, channels = reader.integer("patch_size", default=14), reader.integer("num_channels", default=3)
    patches = max(reader.integer("image_size", default=448) // patch, 1) ** 2
    first = reader.integer("projector_input_dim", default=4096)
    adapter = inner * first + first * reader.integer("projector_output_dim", default=4096)
    embedding = channels * patch * patch * width
    extra = embedding + width + (patches + 1) * width + 4 * width + adapter
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    ratio = reader.number("pixel_shuffle_ratio", default=0.5)
    return Tower(width, layers, layer, patches + 1, embedding, extra, rope=True, merge=round(1 / ratio)), adapter


def siglip_tower(reader: ConfigReader, *, patch: int, head: bool) -> Tower:
    """SigLIP, or (``head`` False) the same without its pooling head."""
    width, heads, inner, layers = _sizes(reader, width=768 if head else 1152, heads=12, inner=3072, layers=12)
    patch, channels = reader.integer("patch_size", default=patch), reader.integer("num_channels", default=3)
    image = reader.integer("image_size", default=224)
    if patch > image:
        reader.refuse("patch_size", f"must not exceed the image size {image}, is {patch}")
    patches = max(image // patch, 1) ** 2
    embedding = channels * patch * patch * width
    extra = embedding + width + patches * width + 2 * width
    if head and reader.boolean("vision_use_head", default=True):
        extra += width + 4 * width * (width + 1) + 2 * width + 2 * width * inner + inner + width
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    return Tower(width, layers, layer, patches, embedding, extra)
