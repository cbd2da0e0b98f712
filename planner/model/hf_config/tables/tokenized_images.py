"""Models whose images have no transformer of their own: patches projected, or a tokenizer of convolutions."""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_models import ImageModel, Images
from planner.model.hf_config.image_parts import Part, linear
from planner.model.hf_config.vision_towers import REFERENCE_IMAGE_SIDE, vision_layer
from planner.model.hf_config.vq_towers import chameleon_tokenizer, emu3_tokenizer, janus_tokenizer
from planner.model.spec import ModelSpec, VisionSpec


def without_layers(text: ModelSpec, tokens: int, *parts: Part) -> VisionSpec:
    """A tower of no layers; the kind of layer that the document asks for is as wide as the language model."""
    heads = text.layer_kinds[0].attention.num_heads
    return VisionSpec(
        hidden_size=text.hidden_size,
        num_layers=0,
        layer=vision_layer(text.hidden_size, heads, text.hidden_size, gated=False, norm="layer"),
        patches_per_image=max(tokens, 1),
        tokens_per_image=max(tokens, 1),
        extra_parameters=sum(part.parameters for part in parts),
        projector_flops_per_image=sum(part.flops for part in parts),
    )


def _fuyu(images: Images) -> VisionSpec:
    keys = images.keys
    patch, channels = keys.integer("patch_size"), keys.integer("num_channels")
    tokens = max(keys.integer("image_size") // patch, 1) ** 2
    return without_layers(images.text, tokens, linear(patch**2 * channels, images.width, tokens))


def _chameleon(images: Images) -> VisionSpec:
    tokenizer, tokens = chameleon_tokenizer(images.part("vq_config", "chameleon_vqgan"))
    return without_layers(images.text, tokens, tokenizer)


def _swin_norm(keys: ClassKeys, model: ModelSpec) -> ModelSpec:
    """With ``swin_norm`` the norms stand behind attention and MLP."""
    if not keys.on("swin_norm"):
        return model
    kinds = tuple(kind.model_copy(update={"norm_placement": "post_branch"}) for kind in model.layer_kinds)
    return model.model_copy(update={"layer_kinds": kinds})


def _emu3(images: Images) -> VisionSpec:
    tokenizer, tokens = emu3_tokenizer(images.part("vq_config", "emu3_vqgan"), REFERENCE_IMAGE_SIDE)
    return without_layers(images.text, tokens, tokenizer)


def _janus(images: Images) -> VisionSpec:
    tower, vq = images.vit("janus_vision_model"), images.part("vq_config", "janus_vqgan")
    inner, more = tower.keys.width("projection_dim"), tower.keys.integer("depth") - 1
    if inner != images.width:
        tower.keys.reader.refuse(
            "projection_dim", f"must equal the language model's hidden size {images.width}, is {inner}"
        )
    aligner = linear(tower.width, inner, tower.patches) + linear(inner, inner, tower.patches).times(more)
    return tower.spec(tower.patches, aligner, janus_tokenizer(vq))


TOKENIZED: dict[str, ImageModel] = {
    "chameleon": ImageModel("chameleon", _chameleon, holder=None, adjust=_swin_norm),
    "emu3": ImageModel("emu3_text_model", _emu3),
    "fuyu": ImageModel("persimmon", _fuyu),
    "janus": ImageModel("llama", _janus),
}
