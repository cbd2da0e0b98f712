"""Models that read documents: two towers in a row or side by side, mergers inside a tower, pooled patches."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_models import ImageModel, Images, qformer
from planner.model.hf_config.image_parts import Part, attention, convolution, linear, mlp, norm, scores, table
from planner.model.hf_config.sam_towers import neck, read_sam
from planner.model.hf_config.vit_towers import ImageTower, Vit, largest_image, layer_part, no_rows, read_vit
from planner.model.hf_config.vits import VITS
from planner.model.spec import MlpSpec, ModelSpec, VisionSpec


def _got(kind: str) -> ImageModel:
    def tower(images: Images) -> VisionSpec:
        sam = read_sam(images.part("vision_config", kind))
        convolutions, width, tokens = sam.shrink(2 * sam.channels, images.width)
        return sam.tower.spec(tokens, convolutions, linear(width, width, tokens))

    return ImageModel("qwen2", tower)


def _hybrid(images: Images) -> VisionSpec:
    """SAM for the large image, with SigLIP for the small one counted beside it: the larger of the two is the tower."""
    high, low = read_sam(images.part("high_res_vision_config", "sam_vision_model")), images.vit("siglip_vision_model")
    side, channels, half = round(low.patches**0.5), high.channels, images.width // 2
    # Features of two depths are scaled to four times the small image's grid and share these convolutions.
    shrink = convolution(channels, 2 * channels, 9, 4 * side**2) + convolution(2 * channels, 4 * channels, 9, side**2)
    aligner = linear(low.width, half, side**2) + linear(4 * channels, half, side**2)
    return high.tower.spec(
        side**2,
        neck(high.tower.width, channels, high.tower.patches) + shrink + Part(1, shrink.flops),
        low.rest + layer_part(low, low.patches).times(low.num_layers),
        aligner + linear(2 * half, images.width, side**2),
    )


def _unlimited(images: Images) -> VisionSpec:
    """SAM, whose features a CLIP without patches of its own reads; both give the projector its input."""
    holder = images.part("vision_config", "unlimited_ocr_vision")
    sam = read_sam(images.part("sam_config", "unlimited_ocr_sam_vision_model", holder))
    keys = images.part("encoder_config", "unlimited_ocr_vision_encoder", holder)
    clip = read_vit(keys, VITS["unlimited_ocr_vision_encoder"])
    convolutions, width, patches = sam.shrink(*_channels(sam.tower.keys))
    tokens = patches + round(patches**0.5) + 1
    return sam.tower.spec(
        tokens,
        convolutions,
        clip.rest + layer_part(clip, patches + 1).times(clip.num_layers),
        linear(width + clip.width, images.width, patches) + table(2, images.width),
    )


_QUERIED = Vit(
    kv_heads="num_key_value_heads",
    head_dim="head_dim",
    has_patches=False,
    rows=no_rows,
    any_size=True,
    norm="rms",
    gated=True,
    output_bias=False,
    mlp_bias=False,
)
_QUERIES_768, _QUERIES_1024 = 144, 256


def _deepseek_ocr2(images: Images) -> VisionSpec:
    """SAM, whose features a language-model-like encoder reads together with as many learned queries."""
    holder = images.part("vision_config", "deepseek_ocr2_vision")
    sam = read_sam(images.part("sam_config", "deepseek_ocr2_sam_vision_model", holder))
    encoder = read_vit(images.part("encoder_config", "deepseek_ocr2_encoder", holder), _QUERIED)
    convolutions, width, patches = sam.shrink(*_channels(sam.tower.keys))
    if width != encoder.width:
        encoder.keys.reader.refuse("hidden_size", f"must equal the {width} channels that SAM gives, is {encoder.width}")
    if set(encoder.keys.reader.strings("layer_types") or ()) - {"full_attention"} or encoder.keys.on(
        "use_sliding_window"
    ):
        encoder.keys.reader.refuse(
            "layer_types", "must be full_attention throughout: windows of this encoder are not read"
        )
    queries = _QUERIES_768 if patches <= _QUERIES_768 else _QUERIES_1024
    return sam.tower.spec(
        queries,
        convolutions,
        encoder.rest + layer_part(encoder, patches + queries).times(encoder.num_layers),
        table(_QUERIES_768 + _QUERIES_1024, encoder.width),
        linear(encoder.width, images.width, queries) + table(1, images.width),
    )


def _channels(keys: ClassKeys) -> list[int]:
    found = keys.reader.integers("downsample_channels", keys.defaults["downsample_channels"])
    if len(found) != 2 or 0 in found:
        keys.reader.refuse("downsample_channels", "must hold two numbers of channels")
        return [1, 1]
    return found


def _minicpm(kind: str) -> ImageModel:
    """SigLIP with a merger after one of its layers: the layers behind it see a quarter of the patches."""

    def tower(images: Images) -> VisionSpec:
        vit = images.vit(kind, merge=4)
        width, patches = vit.width, vit.patches
        kernel = vit.keys.reader.integers("window_kernel_size", [2, 2])
        area = kernel[0] * kernel[-1]
        vit.keys.optional("insert_layer_id", minimum=-1)  # the class sets it from the whole config
        last = images.keys.integer("insert_layer_id", minimum=-1)
        merger = attention(width, area, area, windows=patches // area) + norm(width) + norm(width * area)
        merger += mlp(width * area, area * vit.keys.width("intermediate_size"), width, patches // area)
        merges = images.keys.text("downsample_mode", "16x") != "4x" and 0 <= last < vit.num_layers
        before = last + 1 if merges else vit.num_layers
        left = patches // area if merges else patches
        behind = layer_part(vit, left).times(vit.num_layers - before)
        projector, times = Part(), images.keys.integer("merger_times")
        for step in range(times):
            left //= 4
            outputs = images.width if step == times - 1 else width
            projector += norm(4 * width) + mlp(4 * width, 4 * width, outputs, left)
        tower = replace(vit, num_layers=before)
        return tower.spec(left, merger if merges else merger.idle(), behind, projector)

    return ImageModel("qwen3_5_text", tower)


def _molmo(images: Images) -> VisionSpec:
    """Features of several layers, pooled by attention over squares of 2 x 2 patches."""
    tower, keys = images.vit("molmo2_vision"), images.part("adapter_config", "molmo2_adapter")
    layers = keys.reader.integers("vision_feature_layer", keys.defaults["vision_feature_layer"])
    width, out = keys.width("hidden_size"), keys.width("text_hidden_size")
    for key, given, wanted in (("hidden_size", width, tower.width), ("text_hidden_size", out, images.width)):
        if given != wanted:
            keys.reader.refuse(key, f"must be {wanted}, as wide as what it joins, is {given}")
    head_dim, bias = keys.integer("head_dim"), keys.on("attention_bias")
    inner, pooled = keys.integer("num_attention_heads") * head_dim, keys.integer("num_key_value_heads") * head_dim
    tokens, wide = (-(-round(tower.patches**0.5) // 2)) ** 2, width * len(layers)
    pooling = linear(wide, inner, tokens, bias=bias) + linear(inner, width, tokens, bias=bias)
    pooling += linear(wide, pooled, 4 * tokens, bias=bias).times(2) + scores(1, 4, inner * tokens)
    first = linear(width, keys.width("intermediate_size"), tokens, bias=keys.on("mlp_bias")).times(2)
    last = linear(keys.width("intermediate_size"), out, tokens, bias=False)
    more = images.text_keys.optional("additional_vocab_size", minimum=0)
    return tower.spec(tokens, pooling, first, last, table(more or 0, images.width))


def _molmo_norms(keys: ClassKeys, model: ModelSpec) -> ModelSpec:
    """OLMo's norms where the config asks for them: over all heads, behind the branches."""
    changes = {"norm_placement": "post_branch"} if keys.on("norm_after") else {}
    norms = "per_head" if keys.text("qk_norm_type", "qwen3") == "qwen3" else "full_width"
    kinds = tuple(
        kind.model_copy(update={**changes, "attention": kind.attention.model_copy(update={"qk_norm": norms})})
        for kind in model.layer_kinds
    )
    return model.model_copy(update={"layer_kinds": kinds})


def _ovis(images: Images) -> VisionSpec:
    """Each patch (or square of patches) becomes a distribution over a visual vocabulary with its own table."""
    tower, keys = images.vit("ovis2_vision"), images.keys
    stride, rows = tower.keys.integer("hidden_stride"), tower.keys.integer("vocab_size")
    words = rows - tower.keys.integer("num_visual_indicator_tokens")
    width = keys.width("hidden_size")
    if width != images.width:
        keys.reader.refuse("hidden_size", f"must equal the language model's hidden size {images.width}, is {width}")
    tokens = (-(-round(tower.patches**0.5) // stride)) ** 2
    head = linear(tower.width * stride**2, words, tokens, bias=False) + norm(words)
    return tower.spec(tokens, head, linear(rows, width, tokens, bias=False))


def _granite_docling(images: Images) -> VisionSpec:
    """Merged patches of several depths, coarse or fine; one image goes the coarse way."""
    tower = images.vit("granite_docling_vision")
    scale, out = tower.keys.integer("scale_factor"), tower.keys.width("out_hidden_size")
    if out != images.width:
        tower.keys.reader.refuse(
            "out_hidden_size", f"must equal the language model's hidden size {images.width}, is {out}"
        )
    listed = tower.keys.reader.integers("deepstack_visual_indexes", tower.keys.defaults["deepstack_visual_indexes"])

    def path(factor: int) -> Part:
        wide, tokens = tower.width * factor**2, tower.patches // factor**2
        merger = norm(wide) + mlp(wide, out, out, tokens)
        met = sum(layer < tower.num_layers for layer in listed)
        mergers = merger.times(met) + merger.idle().times(len(listed) - met)
        return linear(wide, out, tokens, bias=False) + mergers

    tokens = tower.patches // scale**2
    ends = norm(tower.width) + norm(out).times(2) + linear(out, out, tokens, bias=False)
    fine = path(scale // 2).idle() if tower.keys.on("use_fine_route") and scale > 1 else Part()
    router, hidden = Part(), images.keys.optional("density_router_hidden_size")
    if hidden:
        router = linear(tower.width, 1, tower.patches) + norm(tower.width)
        router += linear(tower.width, hidden, 1) + linear(hidden, 1, 1)
    return tower.spec(tokens, path(scale), fine, ends, router)


_OFFSETS = 4
"""Projectors of Granite 4 Vision that read one corner of every square of patches each."""


def _granite4(images: Images) -> VisionSpec:
    """Q-Formers on windows of patches: one a chosen depth, four on the corners of squares."""
    tower, keys = images.vit("clip_vision_model"), images.part("qformer_config", "blip_2_qformer")
    rate, depths = (
        images.keys.reader.text("downsample_rate", default=""),
        images.keys.reader.data.get("deepstack_layer_map"),
    )
    sides = [int(each) for each in rate.split("/") if each.isdigit() and int(each)]
    if len(sides) != 2:
        images.keys.reader.refuse("downsample_rate", f"must be two numbers such as '4/8', is {rate[:20]!r}")
        sides = [1, 1]
    if not isinstance(depths, list):
        images.keys.reader.refuse("deepstack_layer_map", "must be a list of pairs of layers")
        depths = []
    query, window = sides
    windows, width = max(round(tower.patches**0.5) // window, 1) ** 2, tower.width
    tokens = windows * query**2
    text = keys.on("use_qformer_text_input")
    former = qformer(keys, query**2, window**2, width, width=width, text=text, windows=windows) + norm(width)
    one = former + norm(width) + table(query**2 + window**2, width) + linear(width, images.width, tokens)
    return tower.spec(tokens, one.times(len(depths) + _OFFSETS), table(1, images.width))


def _hunyuan(images: Images) -> VisionSpec:
    """A convolution that merges patches, a learned column at the end of every row, and three learned tokens."""
    keys = images.part("vision_config", "hunyuan_vl_vision")
    merge = keys.integer("spatial_merge_size")
    tower = images.vit("hunyuan_vl_vision", merge=merge, keys=keys)
    width, out = tower.width, keys.width("text_hidden_size")
    if out != images.width:
        keys.reader.refuse("text_hidden_size", f"must equal the language model's hidden size {images.width}, is {out}")
    keys.integer("out_hidden_size")  # the class reads text_hidden_size alone
    side = round(tower.patches**0.5) // merge
    columns = side * (side + 1)
    return tower.spec(
        columns + 2,
        norm(width, bias=False) + convolution(width, 2 * width, merge**2, side**2, bias=True),
        linear(2 * width, 4 * width, side**2) + linear(4 * width, out, columns),
        table(1, 4 * width) + table(3, out) + norm(out, bias=False),
    )


_RADIO = Vit(
    inner="mlp_ratio",
    patch_bias=False,
    rows=largest_image("max_img_size"),
    any_size=True,
    exit_norm=False,
    qkv_bias="qkv_bias",
)
_FORMER_NAMES = (
    "img_context_token_id video_context_token_id sound_context_token_id llm_config sound_config vit_hidden_size"
)


def _nemotron(images: Images) -> VisionSpec:
    """RADIO: class and register tokens, two scales a layer, patches of video beside those of images."""
    keys, radio = images.keys, images.part("vision_config", "radio")
    for key in _FORMER_NAMES.split():
        if keys.reader.data.get(key) is not None:
            keys.reader.refuse(key, "is the former name of a key", "write the config with a newer transformers")
    if keys.reader.data.get("audio_config") is not None:
        keys.reader.refuse("audio_config", "asks for an audio tower, which is not modelled for this model_type")
    keys.reader.child("audio_config")
    tower = _radio(radio)
    if keys.width("vision_hidden_size") != tower.width:
        keys.reader.refuse("vision_hidden_size", f"must equal the tower's width {tower.width}")
    ratio = int(1 / keys.number("downsample_ratio", 0.5))
    wide, tokens = tower.width * ratio**2, tower.patches // ratio**2
    inner = keys.width("projector_hidden_size")
    projector = norm(wide, bias=False) + mlp(wide, inner, images.width, tokens, bias=False)
    predicted = images.text.mtp is not None
    return tower.spec(tokens, projector, norm(tower.width) if predicted else Part())


def _radio(keys: ClassKeys) -> ImageTower:
    tower = read_vit(keys, _RADIO, merge=2)
    prefix = keys.integer("num_cls_tokens", minimum=0) + keys.integer("num_registers", minimum=0)
    frames = keys.optional("video_temporal_patch_size")
    pixels = keys.integer("num_channels") * keys.integer("patch_size") ** 2 * (frames or 0)
    rest = tower.rest + table(prefix, tower.width) + table(pixels, tower.width)
    rest += table(2, tower.width).times(tower.num_layers)
    layer = tower.layer
    if keys.on("use_swiglu_ffn") and layer.mlp is not None:
        inner = (int(layer.mlp.intermediate_size * 2 / 3) + 7) // 8 * 8
        layer = layer.model_copy(update={"mlp": MlpSpec(intermediate_size=inner, gated=True, bias=True)})
    return replace(tower, layer=layer, rest=rest, extra_tokens=prefix)


def _git(images: Images) -> VisionSpec:
    tower, frames = images.vit("git_vision_model"), images.keys.optional("num_image_with_embedding", minimum=0)
    tokens = tower.patches + 1
    projection = linear(tower.width, images.width, tokens) + norm(images.width)
    return tower.spec(tokens, projection, table(frames or 0, tower.width))


def _embedding_norm(_: ClassKeys, model: ModelSpec) -> ModelSpec:
    return model.model_copy(update={"embedding_norm": True})


DOCUMENTS: dict[str, ImageModel] = {
    "deepseek_ocr2": ImageModel("deepseek_ocr2_text", _deepseek_ocr2),
    "deepseek_vl_hybrid": ImageModel("llama", _hybrid),
    "git": ImageModel("git", _git, holder=None, adjust=_embedding_norm),
    "got_ocr2": _got("got_ocr2_vision"),
    "granite4_vision": ImageModel("granite4_vision_text", _granite4),
    "granite_docling": ImageModel("granite_docling_text", _granite_docling),
    "hunyuan_vl": ImageModel("hunyuan_vl_text", _hunyuan),
    "minicpm_ocr": _minicpm("minicpm_ocr_vision"),
    "minicpmv4_6": _minicpm("minicpmv4_6_vision"),
    "minicpmv4_7": _minicpm("minicpmv4_7_vision"),
    "molmo2": ImageModel("molmo2_text", _molmo, never_tied=True, adjust=_molmo_norms),
    "nemotron_h_omni": ImageModel("nemotron_h", _nemotron, ties_within=True),
    "ovis2": ImageModel("qwen2", _ovis),
    "pp_chart2table": _got("pp_chart2table_vision"),
    "unlimited_ocr": ImageModel("unlimited_ocr_text", _unlimited),
}
