"""Language models behind a vision tower: which tower, which projector.

Shapes: ``transformers`` 5.23 modeling files.  The language model is any that is read inside a config.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.model.hf_config.class_keys import class_defaults
from planner.model.hf_config.layers import read_width
from planner.model.hf_config.patch_towers import (
    glm4v_tower,
    intern_tower,
    kimi_tower,
    llama4_tower,
    pixtral_tower,
    qwen3_tower,
    siglip_tower,
)
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.vision_family import import_gemma3, import_llava
from planner.model.hf_config.vision_towers import read_qwen_tower
from planner.model.spec import ModelSpec, VisionSpec

TextImporter = Callable[[ConfigReader, str, str], ModelSpec | None]
Projected = Callable[[ConfigReader, ConfigReader, int], VisionSpec]
"""The whole config, the tower's config and the language model's width -> tower with projector."""


def _linear(inputs: int, outputs: int, bias: bool = True) -> int:
    return inputs * outputs + (outputs if bias else 0)


def _qwen3(_: ConfigReader, tower: ConfigReader, text: int) -> VisionSpec:
    return qwen3_tower(tower, text)


def _qwen3_5(_: ConfigReader, tower: ConfigReader, text: int) -> VisionSpec:
    return qwen3_tower(tower, text, deepstack=False)


def _glm4v(_: ConfigReader, tower: ConfigReader, text: int) -> VisionSpec:
    return glm4v_tower(tower, text)


def _intern(attention_bias: bool) -> Projected:
    def read(reader: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
        tower = intern_tower(tower_reader, attention_bias=attention_bias)
        merge = round(1 / reader.number("downsample_ratio", default=0.5))
        wide = tower.width * merge**2
        parameters = 2 * wide + _linear(wide, text) + _linear(text, text)
        return tower.spec(tokens=(tower.patches - 1) // merge**2, matmuls=text * (wide + text), parameters=parameters)

    return read


def _pixtral(reader: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    tower = pixtral_tower(tower_reader)
    merge, width = reader.integer("spatial_merge_size", default=2), tower.width
    layer = reader.data.get("vision_feature_layer", -1)
    features = len(layer) if isinstance(layer, list) and layer else 1
    bias = reader.boolean("multimodal_projector_bias", default=False)
    matmuls = width * width * merge**2 + text * (features * width + text)
    parameters = width + matmuls + (2 * text if bias else 0)
    return tower.spec(tokens=tower.patches // merge**2, matmuls=matmuls, parameters=parameters)


def _kimi(reader: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    tower = kimi_tower(tower_reader)
    wide = tower.width * tower.merge**2
    normed = reader.integer("projection_hidden_size", default=tower.width)
    if normed != tower.width:
        reader.refuse("projection_hidden_size", f"must equal the tower's width {tower.width}, is {normed}")
    parameters = 2 * tower.width + _linear(wide, wide) + _linear(wide, text)
    return tower.spec(tokens=tower.patches // tower.merge**2, matmuls=wide * (wide + text), parameters=parameters)


def _llama4(_: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    tower, adapter = llama4_tower(tower_reader)
    matmuls = tower_reader.integer("vision_output_dim", default=7680) * text
    tokens = (tower.patches - 1) // tower.merge**2
    return tower.spec(tokens=tokens, matmuls=matmuls + adapter, parameters=matmuls)


def _paligemma(reader: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    tower = siglip_tower(tower_reader, patch=16, head=True)
    out = reader.integer("projection_dim", default=2048)
    return tower.spec(tokens=tower.patches, matmuls=tower.width * out, parameters=_linear(tower.width, out))


def _idefics3(reader: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    tower = siglip_tower(tower_reader, patch=32, head=False)
    scale = reader.integer("scale_factor", default=2)
    matmuls = tower.width * scale**2 * text
    return tower.spec(tokens=tower.patches // scale**2, matmuls=matmuls, parameters=matmuls)


def _cohere2(reader: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    tower = siglip_tower(tower_reader, patch=16, head=True)
    factor = reader.integer("downsample_factor", default=2)
    inner, wide = reader.integer("alignment_intermediate_size", default=36864), tower.width * factor**2
    parameters = _linear(wide, inner) + _linear(inner // 2, text)
    return tower.spec(
        tokens=tower.patches // factor**2, matmuls=wide * inner + inner // 2 * text, parameters=parameters
    )


def _hyperclovax(_: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    out = read_width(tower_reader, "out_hidden_size", default=3584)
    vision = read_qwen_tower(tower_reader, second_generation=True, text_width=out)
    return vision.model_copy(
        update={
            "extra_parameters": vision.extra_parameters + _linear(out, text),
            "projector_flops_per_image": vision.projector_flops_per_image + 2 * vision.tokens_per_image * out * text,
        }
    )


def _deepseek(_: ConfigReader, tower_reader: ConfigReader, text: int) -> VisionSpec:
    tower = siglip_tower(tower_reader, patch=16, head=True)
    parameters = _linear(tower.width, text) + _linear(text, text)
    return tower.spec(tokens=tower.patches, matmuls=text * (tower.width + text), parameters=parameters)


VISION_MODELS: dict[str, tuple[str, Projected]] = {
    "cohere2_vision": ("cohere2", _cohere2),
    "cohere_compass": ("cohere_compass_text", _qwen3),
    "cosmos3_omni": ("qwen3_vl_text", _qwen3),
    "deepseek_vl": ("llama", _deepseek),
    "glm46v": ("glm4v_text", _glm4v),
    "glm4v": ("glm4v_text", _glm4v),
    "glm4v_moe": ("glm4v_moe_text", _glm4v),
    "glmga": ("glm4v_text", _glm4v),
    "hyperclovax_vision_v2": ("hyperclovax", _hyperclovax),
    "idefics3": ("llama", _idefics3),
    "internvl": ("qwen2", _intern(False)),
    "kimi_k25": ("deepseek_v3", _kimi),
    "lighton_ocr": ("qwen3", _pixtral),
    "llama4": ("llama4_text", _llama4),
    "mistral3": ("mistral", _pixtral),
    "mistral_large4": ("mistral_large4_text", _pixtral),
    "paligemma": ("gemma", _paligemma),
    "qianfan_ocr": ("qwen3", _intern(True)),
    "qwen3_5": ("qwen3_5_text", _qwen3_5),
    "qwen3_5_moe": ("qwen3_5_moe_text", _qwen3_5),
    "qwen3_vl": ("qwen3_vl_text", _qwen3),
    "qwen4_exp": ("qwen4_exp_text", _qwen3_5),
    "qwen3_vl_moe": ("qwen3_vl_moe_text", _qwen3),
    "smolvlm": ("llama", _idefics3),
}
"""``model_type`` -> the language model inside where its config names none, and the tower with its projector."""


_TIED_WITHIN = frozenset({"llama4"})
"""Families whose class asks the language model's config whether the head is tied, not the whole one."""


def import_vision_model(reader: ConfigReader, name: str, family: str, import_text: TextImporter) -> ModelSpec | None:
    """Read a model of ``VISION_MODELS``."""
    text_type, projected = VISION_MODELS[family]
    model = import_text(reader.child("text_config"), name, text_type)
    if model is None:
        return None
    vision = projected(reader, reader.child("vision_config"), model.hidden_size)
    default = bool(class_defaults().get(family, {}).get("defaults", {}).get("tie_word_embeddings", False))
    tied = reader.boolean("tie_word_embeddings", default=default)
    if family in _TIED_WITHIN:
        tied = model.tie_embeddings
    return model.model_copy(update={"family": family, "vision": vision, "tie_embeddings": tied})


def import_llava_next(reader: ConfigReader, name: str, family: str, import_text: TextImporter) -> ModelSpec | None:
    """Read a LLaVA-NeXT: as LLaVA, with a learned token at the end of a row of patches."""
    model = import_llava(reader, name, import_text)
    if model is None or model.vision is None:
        return None
    extra = model.vision.extra_parameters + model.hidden_size
    vision = model.vision.model_copy(update={"extra_parameters": extra})
    # The other classes take over the language model's tie; that of llava_next reads its own key alone.
    tied = bool(reader.data.get("tie_word_embeddings")) if family == "llava_next" else model.tie_embeddings
    return model.model_copy(update={"family": family, "vision": vision, "tie_embeddings": tied})


def import_shieldgemma2(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a ShieldGemma 2: a Gemma 3 that classifies; its class counts the same modules."""
    return import_gemma3(reader, name).model_copy(update={"family": "shieldgemma2"})
