"""Language models behind an audio tower, alone or beside a vision tower: which tower, which projector.

Shapes: ``transformers`` 5.23 modeling files.  The language model is any that is read inside a config.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from planner.model.hf_config.audio_towers import AudioTower, qwen3_audio_tower, whisper_tower
from planner.model.hf_config.class_keys import ClassKeys, class_defaults
from planner.model.hf_config.conformers import granite_tower, query_projector
from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.decoder_reading import import_decoder
from planner.model.hf_config.layer_rules import every_layer
from planner.model.hf_config.patch_towers import qwen3_tower
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.speech_models import realtime_tower, stacked_tower, wave_towers
from planner.model.hf_config.vision_towers import read_qwen_tower
from planner.model.spec import ModelSpec, TowerSpec, VisionSpec

TextImporter = Callable[[ConfigReader, str, str], ModelSpec | None]
Projected = Callable[[ClassKeys, ClassKeys, int], TowerSpec]
"""Keys of the whole config, of the tower's, and the language model's width -> tower with projector."""


@dataclass(frozen=True, slots=True)
class AudioModel:
    """Which classes a model of this type joins."""

    encoder: str
    """``model_type`` of the tower."""
    tower: Projected
    text: str
    """``model_type`` of the language model where its config names none."""
    text_absent: dict[str, Any] = field(default_factory=dict)
    """Keys of the language model where the config has none."""
    text_filled: bool = False
    """Whether these stand in for single keys too."""
    vision: Callable[[ConfigReader, int], VisionSpec] | None = None
    ties: bool = True
    """Whether ``tie_word_embeddings`` ties anything: a class without tied keys keeps its head."""
    key: str = "audio_config"
    """Where the tower's config stands."""


def _two_linears(inputs: int, middle: int, outputs: int, *, bias: bool) -> tuple[int, int]:
    """Weights that each token meets, and parameters."""
    weights = inputs * middle + middle * outputs
    return weights, weights + (middle + outputs if bias else 0)


def _flamingo(keys: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower = whisper_tower(tower_keys)
    matmuls, parameters = _two_linears(tower.width, text, text, bias=keys.on("projector_bias"))
    return tower.spec(tokens=tower.units // 2, matmuls=matmuls, parameters=parameters)


def _glm(_: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower = whisper_tower(tower_keys, table=False)
    matmuls, parameters = _two_linears(tower.inner, 2 * text, text, bias=True)
    return tower.spec(tokens=_grouped(tower, tower_keys), matmuls=matmuls, parameters=parameters)


def _voxtral(_: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower = whisper_tower(tower_keys)
    matmuls, parameters = _two_linears(tower.inner, text, text, bias=False)
    return tower.spec(tokens=_grouped(tower, tower_keys), matmuls=matmuls, parameters=parameters)


def _grouped(tower: AudioTower, keys: ClassKeys) -> int:
    """Tokens where as many frames as fill the width of the MLPs become one."""
    if tower.inner % tower.width or tower.units % (tower.inner // tower.width):
        keys.reader.refuse("intermediate_size", f"must be a multiple of {tower.width} that divides the clip's frames")
    return tower.units * tower.width // tower.inner


def _qwen2(_: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower = whisper_tower(tower_keys)
    return tower.spec(tokens=tower.units // 2, matmuls=tower.width * text, parameters=tower.width * text + text)


def _moss(keys: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower, merged = whisper_tower(tower_keys), keys.integer("audio_merge_size")
    matmuls, parameters = _two_linears(merged * tower.width, text, text, bias=keys.on("projector_bias"))
    return tower.spec(tokens=tower.units // merged, matmuls=matmuls, parameters=parameters + 2 * text)


def _qwen3_asr(_: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower = qwen3_audio_tower(tower_keys)
    out = _output(tower_keys, text)
    matmuls, parameters = _two_linears(tower.width, tower.width, out, bias=True)
    return tower.spec(tokens=tower.units, matmuls=matmuls, parameters=parameters)


def _output(keys: ClassKeys, text: int) -> int:
    out = keys.width("output_dim")
    if out != text:
        keys.reader.refuse("output_dim", f"must equal the language model's hidden size {text}, is {out}")
    return out


def _qwen2_omni(_: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower = whisper_tower(tower_keys, table=False, window="n_window")
    out = _output(tower_keys, text)
    # Two more rows, for the beginning and the end of a clip.
    parameters = tower.width * out + out + 2 * out
    return tower.spec(tokens=tower.units // 2, matmuls=tower.width * out, parameters=parameters)


def _granite(keys: ClassKeys, tower_keys: ClassKeys, text: int) -> TowerSpec:
    tower, projector = granite_tower(tower_keys), ClassKeys(keys.reader.child("projector_config"), "blip_2_qformer")
    joined = len(tower_keys.reader.integers("cat_hidden_layers", [])) + 1 if _joins(tower_keys) else 1
    window, rate = keys.integer("window_size"), keys.integer("downsample_rate")
    return query_projector(tower, projector, joined * tower.width, window, rate, text)


def _joins(keys: ClassKeys) -> bool:
    """Whether outputs of further layers are joined to the last one's."""
    return "cat_hidden_layers" in keys.defaults


def _qwen2_vision(reader: ConfigReader, text: int) -> VisionSpec:
    return read_qwen_tower(reader, second_generation=True, text_width=text)


_QWEN3_ASR_TEXT = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 65536,
    "tie_word_embeddings": True,
}
_GLM_TEXT = {
    "vocab_size": 59264,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-05,
}
_VOXTRAL_TEXT = {
    "vocab_size": 131072,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 30,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05,
    "rope_theta": 100000000.0,
    "head_dim": 128,
}
_MOSS_TEXT = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}

_FUN_TEXT = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": True,
}

AUDIO_MODELS: dict[str, AudioModel] = {
    "audioflamingo3": AudioModel("audioflamingo3_encoder", _flamingo, "qwen2", ties=False),
    "fun_asr_nano": AudioModel("fun_asr_nano_encoder", stacked_tower, "qwen3", _FUN_TEXT),
    "glmasr": AudioModel("glmasr_encoder", _glm, "llama", _GLM_TEXT, text_filled=True),
    "granite_speech": AudioModel("granite_speech_encoder", _granite, "granite", key="encoder_config"),
    "granite_speech_plus": AudioModel("granite_speech_plus_encoder", _granite, "granite", key="encoder_config"),
    "moss_transcribe_diarize": AudioModel("moss_transcribe_diarize_audio", _moss, "qwen3", _MOSS_TEXT),
    "musicflamingo": AudioModel("audioflamingo3_encoder", _flamingo, "qwen2", ties=False),
    "qwen2_5_omni_thinker": AudioModel(
        "qwen2_5_omni_audio_encoder", _qwen2_omni, "qwen2_5_omni_text", vision=_qwen2_vision
    ),
    "qwen2_audio": AudioModel("qwen2_audio_encoder", _qwen2, "qwen2", ties=False),
    "qwen3_asr": AudioModel("qwen3_asr_encoder", _qwen3_asr, "qwen3", _QWEN3_ASR_TEXT),
    "qwen3_omni_moe_thinker": AudioModel(
        "qwen3_omni_moe_audio_encoder", _qwen3_asr, "qwen3_omni_moe_text", vision=qwen3_tower
    ),
    "vibevoice_asr": AudioModel(
        "vibevoice_acoustic_tokenizer_encoder", wave_towers, "qwen2", key="acoustic_tokenizer_encoder_config"
    ),
    "voxtral": AudioModel("voxtral_encoder", _voxtral, "llama", _VOXTRAL_TEXT, text_filled=True, ties=False),
    "voxtral_realtime": AudioModel("voxtral_realtime_encoder", realtime_tower, "voxtral_realtime_text"),
}
"""``model_type`` -> what it joins."""


def _half_inside(keys: ClassKeys) -> int:
    """Width behind the gate: ``ffn_dim`` is that of both halves."""
    if keys.integer("ffn_dim") % 2:
        keys.reader.refuse("ffn_dim", "must be even: it is the width of two halves")
    return max(keys.integer("ffn_dim") // 2, 1)


MOSHI = Decoder(qkv_bias=False, output_bias=False, dense_width=_half_inside, ties=False, windows=every_layer)


def import_moshi(reader: ConfigReader, name: str) -> ModelSpec:
    """Read the decoder of a Moshi, which its class for language models holds alone; its table has a row more."""
    return import_decoder(reader, name, "moshi", MOSHI).model_copy(update={"further_embedding_rows": 1})


def import_audio_model(reader: ConfigReader, name: str, family: str, import_text: TextImporter) -> ModelSpec | None:
    """Read a model of ``AUDIO_MODELS``."""
    known, keys = AUDIO_MODELS[family], ClassKeys(reader, family)
    text = reader.child("text_config", known.text_absent, filled=known.text_filled)
    model = import_text(text, name, known.text)
    if model is None:
        return None
    tower = known.tower(keys, ClassKeys(reader.child(known.key), known.encoder), model.hidden_size)
    vision = known.vision(reader.child("vision_config"), model.hidden_size) if known.vision else None
    default = bool(class_defaults().get(family, {}).get("defaults", {}).get("tie_word_embeddings", False))
    tied = reader.boolean("tie_word_embeddings", default=default) and known.ties
    return model.model_copy(
        update={"family": family, "vision": vision, "further_towers": (tower,), "tie_embeddings": tied}
    )
