"""Models with both a vision and an audio tower of kinds of their own: phi4_multimodal, dots3_note.

Shapes: ``transformers`` 5.23 modeling files.  W is the tower's width, T the language model's.
"""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.audio_towers import REFERENCE_FRAMES
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.conformers import conformer_runs
from planner.model.hf_config.image_models import ImageModel, Images
from planner.model.hf_config.image_parts import Part, convolution, linear, mlp, norm, table
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.vision_towers import vision_layer
from planner.model.hf_config.vit_towers import ImageTower, attention_part
from planner.model.mixers.conv_module import ConvModuleSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, TowerRun, TowerSpec, VisionSpec

KERNEL = 9
"""Places of the two-dimensional convolutions, three by three."""


def _phi_images(images: Images) -> VisionSpec:
    """Four patches become a token; two learned vectors separate crops and rows."""
    tower, text = images.vit("phi4_multimodal_vision"), images.width
    tokens = max(tower.patches // 4, 1)
    for key in ("crop_size", "feature_layer"):
        tower.keys.reader.data.get(key)
    return tower.spec(tokens, table(2, tower.width), mlp(tower.width, text, text, tokens))


def _phi_audio(images: Images) -> TowerSpec:
    """Conformer blocks behind convolutions that keep one of ``time_reduction`` frames; two projectors."""
    keys = images.part("audio_config", "phi4_multimodal_audio")
    width, heads, blocks = keys.width("hidden_size"), keys.integer("num_attention_heads"), keys.integer("num_blocks")
    divided_heads(keys.reader, "num_attention_heads", width, heads)
    for key in ("ext_pw_out_channel", "depthwise_separable_out_channel"):
        if keys.width(key) != width:
            keys.reader.refuse(key, f"must equal the hidden size {width}, as the class needs to run")
    if keys.integer("depthwise_multiplier") != 1:
        keys.reader.refuse("depthwise_multiplier", "must be 1, the only one that is read")
    keys.text("conv_glu_type", "swish"), keys.optional("left_chunk")
    reduction = keys.integer("time_reduction")
    units = max(REFERENCE_FRAMES // reduction, 1)
    chunk = keys.integer("chunk_size", minimum=-1)
    block = vision_layer(width, heads, keys.width("intermediate_size"), gated=True, norm="layer")
    assert isinstance(block.attention, AttentionSpec)
    attention = block.attention.model_copy(update={"sliding_window": chunk if chunk > 0 else None})
    convolved = ConvModuleSpec(
        width=width, conv_kernel=keys.integer("kernel_size"), conv_bias=True, crosses_channels=True, vectors=2
    )
    assert block.mlp is not None
    runs = conformer_runs(blocks, width, units, mlp=block.mlp, attention=attention, convolution=convolved)
    ends = _phi_front(keys, width, reduction) + norm(width).times(blocks)
    distances = keys.integer("bias_max_distance") * (1 if keys.on("bias_symmetric") else 2)
    rate, text = keys.integer("downsample_rate"), images.width
    projector = mlp(rate * width, text, text, max(units // rate, 1))
    ends += table(distances, heads) + projector + projector.idle()  # the other one is for clips beside images
    return TowerSpec(
        modality="audio",
        runs=runs,
        tokens_per_item=max(units // rate, 1),
        extra_parameters=ends.parameters,
        ends_flops_per_item=ends.flops,
    )


def _phi_front(keys: ClassKeys, width: int, reduction: int) -> Part:
    channels, rows, frames = keys.integer("nemo_conv_channels"), keys.integer("input_size"), REFERENCE_FRAMES
    part, inputs = Part(), 1
    for step in range(reduction.bit_length() - 1):
        rows, frames = (rows + 1) // 2, (frames + 1) // 2
        part += convolution(1, channels, KERNEL, rows * frames, bias=True)  # one input channel each
        if step:
            part += convolution(inputs, channels, 1, rows * frames, bias=True)
        inputs = channels
    return part + linear(channels * rows, width, frames)


def _dots_images(images: Images) -> VisionSpec:
    """A tower whose later layers are mixtures of experts, each with a number of its own."""
    keys = images.part("vision_config", "dots3_note_vision_encoder")
    merge, out = keys.integer("adapter_merge_size"), keys.width("adapter_out_dim")
    if out != images.width:
        keys.reader.refuse("adapter_out_dim", f"must equal the language model's hidden size {images.width}, is {out}")
    keys.optional("spatial_merge_size"), keys.optional("adapter_in_dim")  # the class needs both equal to others
    keys.number("router_scaling_factor", 1.0)
    tower = images.vit("dots3_note_vision_encoder", merge=merge, keys=keys)
    experts = _dots_experts(tower)
    routed = Part()
    for count in experts:
        routed += _routed_layer(tower, count, min(keys.optional("num_experts_per_tok") or 2, count))
    wide, tokens = tower.width * merge**2, tower.patches // merge**2
    dense = replace(tower, num_layers=max(tower.num_layers - len(experts), 0))
    return dense.spec(tokens, routed, norm(tower.width), mlp(wide, wide, out, tokens))


def _routed_layer(tower: ImageTower, count: int, top_k: int) -> Part:
    """A layer of experts over all patches, of which each meets ``top_k``."""
    inner, width = tower.keys.width("moe_intermediate_size"), tower.width
    whole = mlp(width, inner, width, tower.patches, gated=True, bias=False)
    weights = whole.idle().times(count) + Part(0, top_k * whole.flops)
    return attention_part(tower, tower.patches) + weights + linear(width, count, tower.patches, bias=False)


def _dots_experts(tower: ImageTower) -> list[int]:
    """Experts of every layer that has them."""
    keys, layers = tower.keys, tower.num_layers
    words, whole = keys.reader.strings("mlp_layer_types"), keys.integer("num_local_experts")
    listed = keys.reader.data.get("per_layer_config")
    sizes = keys.reader.child("per_layer_config") if isinstance(listed, dict) and listed else None
    if words is None:
        pyramid = [*range(4, 65, 4), 64]
        if layers != 25 + len(pyramid):
            keys.reader.refuse("mlp_layer_types", f"is required with {layers} layers")
        return pyramid
    if len(words) != layers or set(words) - {"dense", "sparse"}:
        keys.reader.refuse("mlp_layer_types", f"must hold dense or sparse for each of {layers} layers")
    found = []
    for index, word in enumerate(words):
        names = (f"{index:02d}", f"{index:03d}", str(index))
        own = next((name for name in names if sizes is not None and name in sizes.data), None)
        count = sizes.child(own).integer("num_local_experts", default=whole) if sizes is not None and own else whole
        found += [count] if word == "sparse" else []
    return found


def _dots_audio(images: Images) -> TowerSpec:
    """Three convolutions over frequency and time, then gated layers with rotary positions."""
    keys = images.part("audio_config", "dots3_note_audio_encoder")
    width, heads, layers = (
        keys.width("hidden_size"),
        keys.integer("num_attention_heads"),
        keys.integer("num_hidden_layers"),
    )
    head_dim = divided_heads(keys.reader, "num_attention_heads", width, heads)
    for key in ("num_key_value_heads", "head_dim", "adapter_input_size"):
        keys.optional(key)  # the class sets them from the others
    channels, rows, units = keys.integer("downsample_hidden_size"), keys.integer("feature_size"), REFERENCE_FRAMES
    ends, inputs = Part(), 1
    for _ in range(3):
        rows, units = (rows + 1) // 2, (units + 1) // 2
        ends += convolution(inputs, channels, KERNEL, rows * units, bias=True)
        inputs = channels
    out = keys.width("adapter_out_dim")
    if out != images.width:
        keys.reader.refuse("adapter_out_dim", f"must equal the language model's hidden size {images.width}, is {out}")
    ends += linear(channels * rows, width, units, bias=False) + norm(width, bias=False) + norm(width)
    ends += mlp(width, out, out, units)
    bias = keys.on("attention_bias")
    plain = vision_layer(width, heads, keys.width("intermediate_size"), gated=True, norm="rms")
    changed = {"qkv_bias": bias, "output_bias": bias, "key_bias": False, "head_dim": head_dim}
    attention = plain.attention.model_copy(update=changed)
    layer = LayerSpec(
        attention=attention,
        mlp=MlpSpec(intermediate_size=keys.width("intermediate_size"), gated=True, bias=True),
        norm="rms",
    )
    run = TowerRun(count=layers, layer=layer, hidden_size=width, units_per_item=units, rope=True)
    return TowerSpec(
        modality="audio",
        runs=(run,),
        tokens_per_item=units,
        extra_parameters=ends.parameters,
        ends_flops_per_item=ends.flops,
    )


AUDIO_BESIDE_IMAGES: dict[str, ImageModel] = {
    "dots3_note": ImageModel("dots3_note_text", _dots_images, audio=_dots_audio),
    "phi4_multimodal": ImageModel("phi4_multimodal", _phi_images, holder=None, audio=_phi_audio),
}
