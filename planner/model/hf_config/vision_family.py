"""Language models with a vision tower in front: qwen2_vl, qwen2_5_vl, llava, gemma3.

Defaults and shapes: ``transformers`` configuration and modeling files of each model type (5.x).
"""

from __future__ import annotations

from collections.abc import Callable

from planner.model.hf_config.decoder_reading import import_decoder
from planner.model.hf_config.gemma_family import import_gemma
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.tables.nested import NESTED
from planner.model.hf_config.vision_towers import read_contrastive_tower, read_qwen_tower
from planner.model.spec import ModelSpec, VisionSpec

_CONTRASTIVE = ("clip_vision_model", "siglip_vision_model")
# LlavaConfig builds this tower when the config holds none.
_LLAVA_TOWER = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}

TextImporter = Callable[[ConfigReader, str, str], ModelSpec | None]


def import_qwen_vl(reader: ConfigReader, name: str, family: str) -> ModelSpec:
    """Read a Qwen2-VL or Qwen2.5-VL; older configs keep the language model's keys at the top."""
    nested = isinstance(reader.data.get("text_config"), dict)
    text = reader.child("text_config") if nested else reader
    model = import_decoder(text, name, "qwen2_vl_text", NESTED["qwen2_vl_text"])
    vision = read_qwen_tower(
        reader.child("vision_config"), second_generation=family == "qwen2_5_vl", text_width=model.hidden_size
    )
    tied = model.tie_embeddings or reader.boolean("tie_word_embeddings", default=False)
    return model.model_copy(update={"family": family, "vision": vision, "tie_embeddings": tied})


def import_llava(reader: ConfigReader, name: str, import_text: TextImporter) -> ModelSpec | None:
    """Read a LLaVA: CLIP or SigLIP tower, two-layer projector, any supported language model."""
    text = reader.child("text_config")
    model = import_text(text, name, "llama")
    if model is None:
        return None
    if reader.data.get("vision_config") is None:
        tower = ConfigReader(dict(_LLAVA_TOWER), reader.where, "/vision_config", reader)
    else:
        tower = reader.child("vision_config")
    layer = reader.data.get("vision_feature_layer", -2)
    num_features = len(layer) if isinstance(layer, list) and layer else 1
    bias = reader.boolean("multimodal_projector_bias", default=True)
    width, hidden = num_features * tower.integer("hidden_size", default=768), model.hidden_size
    parameters = hidden * (width + hidden) + (2 * hidden if bias else 0)
    vision = _read_tower(reader, tower, parameters, 0, None)
    projector_flops = 2 * vision.tokens_per_image * hidden * (width + hidden)
    vision = vision.model_copy(update={"projector_flops_per_image": vision.projector_flops_per_image + projector_flops})
    if reader.text("vision_feature_select_strategy", default="default") == "full":
        vision = vision.model_copy(update={"tokens_per_image": vision.patches_per_image})
    tied = model.tie_embeddings or reader.boolean("tie_word_embeddings", default=False)
    return model.model_copy(update={"family": "llava", "vision": vision, "tie_embeddings": tied})


def import_gemma3(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a multimodal Gemma 3: SigLIP tower, pooled to ``mm_tokens_per_image`` tokens, one projection."""
    model = import_gemma(reader.child("text_config"), name, "gemma3_text")
    tower = reader.child("vision_config")
    width = tower.integer("hidden_size", default=768)
    tokens = reader.integer("mm_tokens_per_image", default=256)
    vision = _read_tower(
        reader,
        tower,
        width * model.hidden_size + width,  # projection and the norm before it
        2 * tokens * width * model.hidden_size,
        tokens,
    )
    tied = reader.boolean("tie_word_embeddings", default=True)
    return model.model_copy(update={"family": "gemma3", "vision": vision, "tie_embeddings": tied})


def _read_tower(
    reader: ConfigReader, tower: ConfigReader, parameters: int, flops: int, tokens: int | None
) -> VisionSpec:
    kind = tower.text("model_type", default="clip_vision_model" if tokens is None else "siglip_vision_model")
    if kind not in _CONTRASTIVE:
        tower.refuse("model_type", f"{kind!r} is not supported here", f"supported: {', '.join(_CONTRASTIVE)}")
        kind = _CONTRASTIVE[0]
    return read_contrastive_tower(
        tower, kind=kind, projector_parameters=parameters, projector_flops=flops, tokens_per_image=tokens
    )
