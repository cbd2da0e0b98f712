"""The importers of Hugging Face configs, by ``model_type``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError

from planner.model.hf_config.audio_models import AUDIO_MODELS, import_audio_model, import_moshi
from planner.model.hf_config.bart_family import BARTS, import_bart, import_whisper
from planner.model.hf_config.bert_family import BERTS, import_bert
from planner.model.hf_config.codec_models import import_kyutai
from planner.model.hf_config.crossed_towers import (
    import_blip,
    import_idefics,
    import_mllama,
    import_pp_formulanet,
)
from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.decoder_reading import import_decoder
from planner.model.hf_config.florence_family import VISION as FLORENCE_VISION
from planner.model.hf_config.florence_family import import_florence2
from planner.model.hf_config.gemma_family import import_gemma
from planner.model.hf_config.gpt_family import import_bloom, import_gpt_neox, import_mpt, import_opt
from planner.model.hf_config.image_models import import_image_model
from planner.model.hf_config.joined_models import import_encoder_decoder, import_trocr, import_vision_encoder_decoder
from planner.model.hf_config.mechanisms import refuse_unread
from planner.model.hf_config.modernbert_family import import_modernbert_decoder
from planner.model.hf_config.nemotron_family import import_nemotron_h
from planner.model.hf_config.nested_sizes import import_dbrx
from planner.model.hf_config.older_families import import_falcon, import_gpt_bigcode, import_gpt_neox_japanese
from planner.model.hf_config.pix2struct_family import PARTS as PIX2STRUCT_PARTS
from planner.model.hf_config.pix2struct_family import import_pix2struct
from planner.model.hf_config.prophetnet_family import import_prophetnet
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.t5_family import T5S, import_t5
from planner.model.hf_config.t5gemma_family import SECOND, import_t5gemma, import_t5gemma2
from planner.model.hf_config.tables import TABLES
from planner.model.hf_config.tables.images import IMAGE_MODELS
from planner.model.hf_config.tables.nested import NESTED
from planner.model.hf_config.unmodelled import UNMODELLED
from planner.model.hf_config.vision_family import import_gemma3, import_llava, import_qwen_vl
from planner.model.hf_config.vision_models import (
    VISION_MODELS,
    import_llava_next,
    import_shieldgemma2,
    import_vision_model,
)
from planner.model.spec import ModelSpec
from planner.model.traced import how_to_trace, traced_model
from profiles.errors import DocumentInvalid
from profiles.spelling import typing_slip

Importer = Callable[[ConfigReader, str], ModelSpec | None]


def _named(family: str, importer: Callable[[ConfigReader, str, str], ModelSpec]) -> Importer:
    return lambda reader, name: importer(reader, name, family)


def _table(family: str, table: Decoder) -> Importer:
    return lambda reader, name: import_decoder(reader, name, family, table)


def _import_kimi_k2(reader: ConfigReader, name: str) -> ModelSpec:
    """Kimi K2 has no class of its own: the keys and the layout of deepseek_v3."""
    model = import_decoder(reader, name, "deepseek_v3", TABLES["deepseek_v3"])
    return model.model_copy(update={"family": "kimi_k2"})


TEXT_IMPORTERS: dict[str, Importer] = {
    **{family: _table(family, table) for family, table in TABLES.items()},
    **{family: _named(family, import_bert) for family in BERTS},
    **{family: _named(family, import_bart) for family in BARTS},
    **{family: _named(family, import_t5) for family in T5S},
    "whisper": import_whisper,
    "t5gemma": import_t5gemma,
    "t5gemma2": import_t5gemma2,
    "encoder-decoder": import_encoder_decoder,
    "vision-encoder-decoder": import_vision_encoder_decoder,
    "trocr": import_trocr,
    "florence2": import_florence2,
    "pix2struct": import_pix2struct,
    "prophetnet": import_prophetnet,
    "gemma2": _named("gemma2", import_gemma),
    "gemma3_text": _named("gemma3_text", import_gemma),
    "dbrx": import_dbrx,
    "falcon": import_falcon,
    "gpt_bigcode": import_gpt_bigcode,
    "gpt_neox_japanese": import_gpt_neox_japanese,
    "gpt-sw3": _table("gpt2", TABLES["gpt2"]),
    "gpt_neox": import_gpt_neox,
    "opt": import_opt,
    "bloom": import_bloom,
    "mpt": import_mpt,
    "nemotron_h": import_nemotron_h,
    "modernbert-decoder": import_modernbert_decoder,
    "kimi_k2": _import_kimi_k2,
}


_NESTED_IMPORTERS: dict[str, Importer] = {family: _table(family, table) for family, table in NESTED.items()}
_JOINED = ("encoder-decoder", "vision-encoder-decoder", "trocr", "pix2struct", "prophetnet", "t5gemma2", "florence2")
JOINED_PARTS = (*SECOND, *PIX2STRUCT_PARTS, FLORENCE_VISION, "prophetnet", "trocr", "vit")
"""Classes of keys that these read."""
_ALONE = {*BERTS, *BARTS, *T5S, *_JOINED, "whisper", "t5gemma", "xlnet"}
"""No decoders of next tokens: a tower in front of one of these would need a reader that knows both."""
_INSIDE: dict[str, Importer] = {
    kind: importer for kind, importer in {**_NESTED_IMPORTERS, **TEXT_IMPORTERS}.items() if kind not in _ALONE
}


def _import_text(reader: ConfigReader, name: str, default_type: str) -> ModelSpec | None:
    """Language model nested in a multimodal config."""
    kind = reader.text("model_type", default=default_type)
    importer = _INSIDE.get(kind)
    if importer is None:
        said = f": it has {UNMODELLED[kind]}, which is not read" if kind in UNMODELLED else ""
        known = () if said else tuple(sorted(_INSIDE))
        hint = _supported(kind, known) if known else "describe the model in Meshwright's own model YAML"
        reader.refuse("model_type", f"{kind[:80]!r} is not supported here{said}", hint)
        return None
    return importer(reader, name)


def _vision(family: str) -> Importer:
    return lambda reader, name: import_vision_model(reader, name, family, _import_text)


def _audio(family: str) -> Importer:
    return lambda reader, name: import_audio_model(reader, name, family, _import_text)


def _images(family: str) -> Importer:
    entry = IMAGE_MODELS[family]
    return lambda reader, name: import_image_model(reader, name, family, entry, _import_text)


IMPORTERS: dict[str, Importer] = TEXT_IMPORTERS | {
    **{family: _images(family) for family in IMAGE_MODELS},
    **{family: _audio(family) for family in AUDIO_MODELS},
    **{family: _vision(family) for family in VISION_MODELS},
    **{
        family: partial(import_llava_next, family=family, import_text=_import_text)
        for family in ("llava_next", "llava_next_video", "llava_onevision")
    },
    "shieldgemma2": import_shieldgemma2,
    "blip": import_blip,
    "mllama": import_mllama,
    "moshi": import_moshi,
    "kyutai_speech_to_text": import_kyutai,
    "pp_formulanet": import_pp_formulanet,
    "idefics": import_idefics,
    "qwen2_vl": _named("qwen2_vl", import_qwen_vl),
    "qwen2_5_vl": _named("qwen2_5_vl", import_qwen_vl),
    "gemma3": import_gemma3,
    "llava": partial(import_llava, import_text=_import_text),
}


def supported_model_types() -> tuple[str, ...]:
    """Every ``model_type`` that can be read, sorted."""
    return tuple(sorted(IMPORTERS))


def model_from_hf_config(data: dict[str, Any], name: str, where: str) -> ModelSpec:
    """Turn a parsed ``config.json`` into a ``ModelSpec``.

    ``where`` names the file in errors.  Keys that are left out take the default of the ``transformers`` class.
    A family without a table that transformers has is traced from its module (``planner.model.traced``).
    Raises ``DocumentInvalid`` for an architecture that is not supported (naming what is), and for impossible values
    (all of them at once, each with its JSON pointer).
    """
    if not isinstance(data, dict):
        raise DocumentInvalid("a model config must be a JSON object", where=where)
    data = _with_floats(data)
    kind = data.get("model_type")
    if not isinstance(kind, str) or kind not in IMPORTERS:
        traced = _traced(kind, data, name, where) if isinstance(kind, str) else None
        if traced is None:
            raise _unsupported(kind, data.get("architectures"), where)
        return traced
    reader = ConfigReader(data, where)
    try:
        spec = IMPORTERS[kind](reader, name)
        for each in reader.readers():
            refuse_unread(each)
    except ValidationError as error:
        reader.finish()
        raise DocumentInvalid(
            f"the model config does not describe a possible model: {error.errors()[0]['msg']}", where=where
        ) from error
    reader.finish()
    if spec is None:
        raise DocumentInvalid("the language model inside this config cannot be read", where=where)
    return spec


def _traced(kind: str, data: dict[str, Any], name: str, where: str) -> ModelSpec | None:
    hint = f"describe the model in Meshwright's own model YAML. Supported: {', '.join(supported_model_types())}"
    return traced_model(data, name, where, UNMODELLED.get(kind, ""), hint)


def _with_floats(value: Any) -> Any:
    """The same with ``{"__float__": "Infinity"}``, as transformers 5 writes it, turned into the float."""
    if isinstance(value, list):
        return (
            [_with_floats(each) for each in value] if any(isinstance(each, (list, dict)) for each in value) else value
        )
    if not isinstance(value, dict):
        return value
    if set(value) == {"__float__"} and value["__float__"] in ("Infinity", "-Infinity", "NaN"):
        return float(value["__float__"])
    return {key: _with_floats(each) for key, each in value.items()}


def _supported(kind: str, known: tuple[str, ...]) -> str:
    match = typing_slip(kind[:80], known)
    start = f"did you mean '{match}'? " if match else ""
    return f"{start}Supported: {', '.join(known)}; or describe the model in Meshwright's own model YAML"


def _unsupported(kind: object, architectures: object, where: str) -> DocumentInvalid:
    classes = ""
    if isinstance(architectures, list) and architectures:
        classes = f" (architectures: {', '.join(str(item)[:80] for item in architectures[:4])})"
    where = f"{where}#/model_type"
    if not isinstance(kind, str):
        hint = f"add one; supported: {', '.join(supported_model_types())}"
        return DocumentInvalid(f"the model config has no model_type{classes}", where=where, hint=hint)
    return DocumentInvalid(
        f"model_type {kind[:80]!r}{classes} is not supported",
        where=where,
        hint=_supported(kind, supported_model_types()) + how_to_trace(),
    )
