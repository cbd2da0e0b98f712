"""Models of 2025 and 2026 that read images, some with an audio tower too; shapes of ``transformers`` 5.23.

W is the tower's width, T the language model's.
"""

from __future__ import annotations

from planner.model.hf_config.folded_patches import folded_patches
from planner.model.hf_config.image_models import ImageModel, Images
from planner.model.hf_config.image_parts import attention, convolution, linear, mlp, norm, table
from planner.model.hf_config.tables.tokenized_images import without_layers
from planner.model.hf_config.vision_towers import REFERENCE_IMAGE_SIDE
from planner.model.hf_config.vit_towers import ImageTower
from planner.model.hf_config.wave_towers import gemma4_audio, muse_audio
from planner.model.mixers.short_conv import ShortConvSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, PartSpec, TowerRun, TowerSpec, VisionSpec

OPTIONAL_PARTS = frozenset({"gemma4_vision", "gemma4_audio", "gemma4_unified_vision", "gemma4_unified_audio"})
"""``model_type`` of towers that the class of their family leaves out unless the config has them."""


def must_be_text_width(images: Images, given: int, holder: str, key: str) -> None:
    """Record a finding where a tower's output is not as wide as the language model."""
    if given != images.width:
        said = f"must equal the language model's hidden size {images.width}, is {given}"
        images.keys.reader.child(holder).refuse(key, said)


def _merging(images: Images, model_type: str, key: str = "spatial_merge_size") -> tuple[ImageTower, int, int]:
    """A tower whose patches are merged in squares, the side of a square, and the tokens of an image."""
    keys = images.part("vision_config", model_type)
    merge = keys.integer(key)
    tower = images.vit(model_type, merge=merge, keys=keys)
    return tower, merge, tower.patches // merge**2


def _inkling2(images: Images) -> VisionSpec:
    tower, merge, tokens = _merging(images, "inkling2_vision")
    out, bias = tower.keys.width("text_hidden_size"), tower.keys.on("projector_bias")
    must_be_text_width(images, out, "vision_config", "text_hidden_size")
    return tower.spec(
        tokens, mlp(tower.width * merge**2, tower.keys.width("projection_hidden_dim"), out, tokens, bias=bias)
    )


def _inkling(images: Images) -> VisionSpec:
    keys = images.part("vision_config", "inkling_vision")
    out = keys.width("text_hidden_size")
    must_be_text_width(images, out, "vision_config", "text_hidden_size")
    keys.optional("hidden_size"), keys.optional("num_attention_heads")  # the class has neither
    tokens = max(REFERENCE_IMAGE_SIDE // keys.integer("patch_size"), 1) ** 2
    return without_layers(images.text, tokens, folded_patches(keys, out, tokens), norm(out, bias=False))


def _inkling_audio(images: Images, model: ModelSpec) -> ModelSpec:
    """A table of levels of every mel bin, whose rows a token of audio sums up, and a norm."""
    keys = images.part("audio_config", "inkling_audio")
    rows, out = keys.integer("n_mel_bins") * keys.integer("mel_vocab_size"), keys.width("text_hidden_size")
    must_be_text_width(images, out, "audio_config", "text_hidden_size")
    parts = (
        PartSpec(name="audio_table", kind="table", in_features=out, learned=rows * out),
        PartSpec(name="audio_norm", kind="norm", in_features=out),
    )
    return model.model_copy(update={"entry_parts": (*model.entry_parts, *parts)})


def _minimax(images: Images) -> VisionSpec:
    tower, merge, tokens = _merging(images, "minimax_m3_vl_vision")
    inner, text = images.keys.width("projector_hidden_size"), images.width
    return tower.spec(tokens, mlp(tower.width, inner, text, tower.patches), mlp(text * merge**2, inner, text, tokens))


def _step(images: Images) -> VisionSpec:
    tower = images.vit("step3p5_vision")
    side = round(tower.patches**0.5)
    half = (side + 1) // 2
    quarter, width = (half + 1) // 2, tower.width
    tokens = quarter**2
    tower.keys.optional("max_position_embeddings")  # of the rotary table
    return tower.spec(
        tokens,
        convolution(width, 2 * width, 9, half**2, bias=True),
        convolution(2 * width, 4 * width, 9, tokens, bias=True),
        linear(4 * width, images.width, tokens, bias=images.keys.on("projector_bias")),
    )


def _muse(images: Images) -> VisionSpec:
    tower, merge, tokens = _merging(images, f"{images.keys.model_type}_vision", "merge_size")
    wide, inner = images.keys.width("out_hidden_size"), images.keys.width("projector_hidden_size")
    if wide != tower.width * merge**2:
        images.keys.reader.refuse("out_hidden_size", f"must be {tower.width * merge**2}, {merge}^2 patches, is {wide}")
    adapter = mlp(wide, inner, inner, tokens, bias=False) + linear(inner, images.width, tokens, bias=False)
    return tower.spec(tokens, adapter)


def _glm5(images: Images) -> VisionSpec:
    tower, merge, tokens = _merging(images, "glm5_next_vision")
    out, inner = tower.keys.width("out_hidden_size"), tower.keys.width("projection_intermediate_size")
    must_be_text_width(images, out, "vision_config", "out_hidden_size")
    return tower.spec(
        tokens,
        linear(tower.width * merge**2, out, tokens) + linear(out, out, tokens, bias=False) + norm(out),
        mlp(out, inner, out, tokens, gated=True, bias=False),
    )


def _kosmos(model_type: str, *, either: bool) -> ImageModel:
    """Learned queries that attend to an image's states and to themselves."""

    def tower(images: Images) -> VisionSpec:
        vit, queries, text = images.vit(model_type), images.keys.integer("latent_query_num"), images.width
        states = vit.patches + vit.extra_tokens
        dense = linear(vit.width, text, states)
        return vit.spec(queries, dense, table(queries, text), attention(text, queries, states + queries))

    return ImageModel(model_type.replace("vision", "text"), tower, ties_within=not either, ties_either=either)


def _lfm3(images: Images) -> TowerSpec:
    """Gated convolutions over the grid of patches, and attention in every second layer."""
    keys = images.part("vision_config", "lfm3_vl_vision")
    width, heads, layers = (
        keys.width("hidden_size"),
        keys.integer("num_attention_heads"),
        keys.integer("num_hidden_layers"),
    )
    kv_heads, merge, patch = (
        keys.integer("num_key_value_heads"),
        keys.integer("spatial_merge_size"),
        keys.integer("patch_size"),
    )
    if width % heads or heads % kv_heads:
        keys.reader.refuse("num_attention_heads", f"must divide {width} and be a multiple of {kv_heads}, is {heads}")
        kv_heads = heads
    words = keys.reader.strings("layer_types")
    if words is None:
        words = ["full_attention" if index and index % 2 == 0 else "conv" for index in range(layers)]
    if len(words) != layers or set(words) - {"conv", "full_attention"}:
        keys.reader.refuse("layer_types", f"must hold conv or full_attention for each of {layers} layers")
    patches = max(REFERENCE_IMAGE_SIDE // patch // merge, 1) ** 2 * merge**2
    network = MlpSpec(intermediate_size=keys.width("intermediate_size"), gated=True)
    head_dim = max(width // heads, 1)
    softmax = AttentionSpec(
        num_heads=heads, num_kv_heads=kv_heads, head_dim=head_dim, v_head_dim=head_dim, qk_norm="per_head", causal=False
    )
    convolved = ShortConvSpec(width=width, conv_kernel=keys.integer("conv_kernel_size") ** 2)
    runs = tuple(
        TowerRun(
            count=words.count(word),
            layer=LayerSpec(attention=mixer, mlp=network),
            hidden_size=width,
            units_per_item=patches,
            rope=word == "full_attention",
        )
        for word, mixer in (("conv", convolved), ("full_attention", softmax))
        if word in words
    )
    pixels, tokens = keys.integer("in_channels") * keys.integer("temporal_patch_size") * patch**2, patches // merge**2
    inner, bias = images.keys.width("projector_hidden_size"), images.keys.on("projector_bias")
    ends = linear(pixels, width, patches, bias=False) + norm(width, bias=False) + norm(width)
    ends += mlp(width * merge**2, inner, images.width, tokens, bias=bias)
    return TowerSpec(
        modality="vision",
        runs=runs,
        tokens_per_item=max(tokens, 1),
        extra_parameters=ends.parameters,
        ends_flops_per_item=ends.flops,
    )


def _gemma4(images: Images) -> VisionSpec | None:
    if images.keys.reader.data.get("vision_config") is None:
        return None
    tower, _, tokens = _merging(images, "gemma4_vision", "pooling_kernel_size")
    tower.keys.on("use_clipped_linears"), tower.keys.on("standardize")  # bounds and means, which are not trained
    return tower.spec(tokens, linear(tower.width, images.width, tokens, bias=False))


def _gemma4_unified(images: Images) -> VisionSpec | None:
    """No tower: patches are projected."""
    if images.keys.reader.data.get("vision_config") is None:
        return None
    keys = images.part("vision_config", "gemma4_unified_vision")
    side = keys.integer("patch_size") * keys.integer("pooling_kernel_size")
    pixels, width, out = 3 * side**2, keys.width("mm_embed_dim"), keys.width("output_proj_dims")
    if out != width:
        keys.reader.refuse("output_proj_dims", f"must equal mm_embed_dim = {width}, is {out}")
    tokens = max(REFERENCE_IMAGE_SIDE // side, 1) ** 2
    return without_layers(
        images.text,
        tokens,
        norm(pixels) + linear(pixels, width, tokens) + norm(width).times(2),
        table(2 * keys.integer("mm_posemb_size"), width) + linear(out, images.width, tokens, bias=False),
    )


def _gemma4_unified_audio(images: Images, model: ModelSpec) -> ModelSpec:
    """Frames of samples, projected."""
    if images.keys.reader.data.get("audio_config") is None:
        return model
    keys = images.part("audio_config", "gemma4_unified_audio")
    features = keys.width("audio_embed_dim")
    part = PartSpec(name="audio_projection", kind="projection", in_features=features, out_features=images.width)
    return model.model_copy(update={"entry_parts": (*model.entry_parts, part)})


def _ernie(images: Images) -> VisionSpec:
    """Squares of patches, then pairs of frames (an image stands for both), each through an MLP."""
    tower, merge, tokens = _merging(images, "ernie4_5_vl_moe_vision")
    wide, frames = tower.width * merge**2, tower.keys.integer("temporal_merge_size")
    spatial, temporal = mlp(wide, wide, wide, tokens), mlp(frames * wide, wide, wide, tokens)
    return tower.spec(
        tokens,
        spatial + temporal + norm(wide).times(2),
        linear(wide, images.width, tokens) + norm(images.width, bias=False),
    )


LATER_IMAGES: dict[str, ImageModel] = {
    "ernie4_5_vl_moe": ImageModel("ernie4_5_vl_moe_text", _ernie),
    "gemma4": ImageModel("gemma4_text", _gemma4, audio=gemma4_audio),
    "gemma4_unified": ImageModel("gemma4_unified_text", _gemma4_unified, finish=_gemma4_unified_audio),
    "glm5_next": ImageModel("glm5_next_text", _glm5),
    "inkling2": ImageModel("inkling2_text", _inkling2, ties_within=True),
    "inkling_mm_model": ImageModel("inkling_text", _inkling, ties_within=True, finish=_inkling_audio),
    "kosmos-2": _kosmos("kosmos_2_vision_model", either=True),
    "kosmos-2.5": _kosmos("kosmos_2_5_vision_model", either=False),
    "lfm3_vl": ImageModel("lfm3", _lfm3),
    "minimax_m3_vl": ImageModel("minimax_m3_vl_text", _minimax),
    "muse_glimmer": ImageModel("muse_glimmer_text", _muse),
    "muse_spark": ImageModel("muse_spark_text", _muse, audio=muse_audio),
    "step3p7": ImageModel("step3p5", _step),
}
