"""Models that read images: tower and projector of each family; shapes of ``transformers`` 5.23 modeling files.

W is the tower's width, T the language model's.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_models import ImageModel, Images, perceiver, qformer
from planner.model.hf_config.image_parts import Part, attention, linear, mlp, norm, table
from planner.model.hf_config.tables.audio_beside_images import AUDIO_BESIDE_IMAGES
from planner.model.hf_config.tables.documents import DOCUMENTS
from planner.model.hf_config.tables.later_images import LATER_IMAGES
from planner.model.hf_config.tables.tokenized_images import TOKENIZED
from planner.model.hf_config.vit_towers import ImageTower, layer_part
from planner.model.spec import VisionSpec


def _features(keys: ClassKeys, key: str = "vision_feature_layer") -> int:
    """How many layers' states a projector reads side by side."""
    value = keys.reader.data.get(key, keys.defaults.get(key))
    return len(value) if isinstance(value, list) and value else 1


def _aria(images: Images) -> VisionSpec:
    tower, most = images.vit("idefics3_vision"), images.keys.integer("max_value_projector_patch_to_query_dict")
    known = images.keys.reader.child("projector_patch_to_query_dict").data
    wanted = known.get(str(tower.patches), most)
    tokens = min(wanted, most) if isinstance(wanted, int) and wanted > 0 else most
    width, patches = tower.width, tower.patches
    twice = linear(width, width, tokens, bias=False) + linear(width, width, patches, bias=False).times(2)
    return tower.spec(
        tokens,
        table(most, width),
        twice + attention(width, tokens, patches) + linear(width, width, tokens) + norm(width).times(3),
        mlp(width, images.width, images.width, tokens, bias=False),
    )


def _aya(images: Images) -> VisionSpec:
    factor = images.keys.integer("downsample_factor")
    tower = images.vit("siglip_vision_model")
    inner = images.keys.optional("alignment_intermediate_size") or images.width
    wide, tokens = tower.width * factor**2, tower.patches // factor**2
    return tower.spec(tokens, norm(wide), linear(wide, inner, tokens), linear(inner // 2, images.width, tokens))


def _blip(family: str, *, embeds_text: bool) -> ImageModel:
    """BLIP-2, or (``embeds_text``) InstructBLIP, whose Q-Former reads the instruction too."""

    def tower(images: Images) -> VisionSpec:
        if not images.keys.reader.boolean("use_decoder_only_language_model", default=True):
            images.keys.reader.refuse(
                "use_decoder_only_language_model", "must be true: a language model with an encoder is not modelled"
            )
        vit = images.vit(f"{family}_vision_model")
        keys = images.part("qformer_config", f"{family}_qformer")
        width, queries = keys.width("hidden_size"), images.keys.integer("num_query_tokens")
        _divides(keys, width)
        keys.integer("encoder_hidden_size")  # the class sets it to the tower's width
        text = embeds_text or keys.on("use_qformer_text_input")
        rows = keys.integer("vocab_size") + keys.integer("max_position_embeddings") if embeds_text else 0
        former = qformer(keys, queries, vit.patches + 1, vit.width, text=text)
        ends = table(queries, width) + norm(width) + table(rows, width)
        return vit.spec(queries, ends, former, linear(width, images.width, queries))

    return ImageModel("opt", tower, ties_within=True)


def _divides(keys: ClassKeys, width: int) -> None:
    heads = keys.integer("num_attention_heads")
    if width % heads:
        keys.reader.refuse("num_attention_heads", f"must divide the hidden size {width}, is {heads}")


def _merged(tower: ImageTower, merge: int, inner: int, out: int, *, bias: bool = True) -> tuple[int, Part]:
    """A norm on every patch, and an MLP on squares of ``merge`` x ``merge`` patches."""
    tokens, wide = tower.patches // merge**2, tower.width * merge**2
    return tokens, norm(tower.width) + mlp(wide, inner or wide, out, tokens, bias=bias)


def _merging(images: Images, model_type: str) -> tuple[ImageTower, int]:
    """A tower whose patches are merged in squares, and the side of a square."""
    keys = images.part("vision_config", model_type)
    merge = keys.integer("spatial_merge_size")
    return images.vit(model_type, merge=merge, keys=keys), merge


def _cosmos_edge(images: Images) -> VisionSpec:
    tower, merge = _merging(images, "cosmos3_edge_vision")
    return tower.spec(*_merged(tower, merge, images.keys.width("projector_hidden_size"), images.width))


def _exaone(images: Images) -> VisionSpec:
    tower, merge = _merging(images, "exaone4_5_vision")
    out = _out_width(images, tower)
    wide, tokens = tower.width * merge**2, tower.patches // merge**2
    return tower.spec(tokens, norm(tower.width, bias=False), mlp(wide, wide, out, tokens))


def _out_width(images: Images, tower: ImageTower) -> int:
    out = tower.keys.width("out_hidden_size")
    if out != images.width:
        tower.keys.reader.refuse(
            "out_hidden_size", f"must equal the language model's hidden size {images.width}, is {out}"
        )
    return out


def _glm_ocr(images: Images) -> VisionSpec:
    tower, merge = _merging(images, "glm_ocr_vision")
    out, tokens = _out_width(images, tower), tower.patches // merge**2
    inner = out * tower.keys.integer("in_channels")
    return tower.spec(
        tokens,
        linear(tower.width * merge**2, out, tokens) + linear(out, out, tokens, bias=False) + norm(out),
        mlp(out, inner, out, tokens, gated=True, bias=False),
    )


def _paddle(images: Images) -> VisionSpec:
    tower, merge = _merging(images, "paddleocr_vl_vision")
    return tower.spec(*_merged(tower, merge, 0, images.width))


def _video_llama(images: Images) -> VisionSpec:
    tower = images.vit("video_llama_3_vision")
    return tower.spec(tower.patches, mlp(tower.width, images.width, images.width, tower.patches))


def _video_llava(images: Images) -> VisionSpec:
    tower, bias = images.vit("clip_vision_model"), images.keys.on("multimodal_projector_bias")
    tokens = _selected(images, tower)
    features = _features(images.keys)
    projector = mlp(features * tower.width, images.width, images.width, tokens, bias=bias)
    return tower.spec(tokens, projector, _second(tower))


def _second(tower: ImageTower) -> Part:
    """A second tower of the same kind, for videos: its weights, which an image does not meet."""
    return tower.rest.idle() + layer_part(tower, 0).times(tower.num_layers)


def _selected(images: Images, tower: ImageTower) -> int:
    """Tokens of an image: its patches, and the class token where the config keeps it."""
    how = images.keys.text("vision_feature_select_strategy", "default")
    return tower.patches + (tower.extra_tokens if how == "full" else 0)


def _vipllava(images: Images) -> VisionSpec:
    tower, features = images.vit("clip_vision_model"), _features(images.keys)
    wide, tokens = features * tower.width, tower.patches
    return tower.spec(tokens, norm(wide), mlp(wide, images.width, images.width, tokens))


def _idefics2(images: Images) -> VisionSpec:
    tower, keys = images.vit("idefics2_vision"), images.part("perceiver_config", "idefics2_perceiver")
    width = keys.width("hidden_size")
    if width != images.width:
        keys.reader.refuse("hidden_size", f"must equal the language model's hidden size {images.width}, is {width}")
    inner = max(
        (kind.mlp.intermediate_size for kind in images.text.layer_kinds if kind.mlp is not None), default=images.width
    )
    projection = mlp(tower.width, inner, images.width, tower.patches, gated=True, bias=False)
    return tower.spec(keys.integer("resampler_n_latents"), projection, perceiver(keys, tower.patches, width))


def _lfm2(images: Images) -> VisionSpec:
    factor = images.keys.integer("downsample_factor")
    tower = images.vit("siglip2_vision_model", merge=factor)
    wide, tokens = tower.width * factor**2, tower.patches // factor**2
    normed = norm(wide) if images.keys.on("projector_use_layernorm") else Part()
    bias = images.keys.on("projector_bias")
    inner = images.keys.width("projector_hidden_size")
    return tower.spec(tokens, normed, mlp(wide, inner, images.width, tokens, bias=bias))


IMAGE_MODELS: dict[str, ImageModel] = {
    "aria": ImageModel("aria_text", _aria),
    "aya_vision": ImageModel("cohere2", _aya),
    "blip-2": _blip("blip_2", embeds_text=False),
    "cosmos3_edge": ImageModel("cosmos3_edge_text", _cosmos_edge, never_tied=True),
    "exaone4_5": ImageModel("exaone4", _exaone),
    "glm_ocr": ImageModel("glm_ocr_text", _glm_ocr),
    "idefics2": ImageModel("mistral", _idefics2),
    "instructblip": _blip("instructblip", embeds_text=True),
    "instructblipvideo": _blip("instructblipvideo", embeds_text=True),
    "lfm2_vl": ImageModel("lfm2", _lfm2),
    "paddleocr_vl": ImageModel("paddleocr_vl_text", _paddle),
    "video_llama_3": ImageModel("qwen2", _video_llama),
    "video_llava": ImageModel("llama", _video_llava),
    "vipllava": ImageModel("llama", _vipllava),
    **DOCUMENTS,
    **AUDIO_BESIDE_IMAGES,
    **LATER_IMAGES,
    **TOKENIZED,
}
