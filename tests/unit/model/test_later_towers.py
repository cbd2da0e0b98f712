"""Towers of 2025 and 2026: layers that are not equal, no layers, and weights that text does not meet."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.hf_config import model_from_hf_config
from planner.model.parameters import active_parameters, total_parameters
from planner.model.spec import ModelSpec
from profiles.validation import FindingsInvalid


def _read(model_type: str, **keys: Any) -> ModelSpec:
    return model_from_hf_config({"model_type": model_type, **keys}, "model", "config.json")


def test_a_tower_of_convolutions_and_attention_has_a_run_of_each() -> None:
    (tower,) = _read("lfm3_vl").towers
    assert tower.modality == "vision"
    assert [(run.count, run.layer.attention.kind) for run in tower.runs] == [(8, "short_conv"), (6, "gqa")]
    with pytest.raises(FindingsInvalid) as raised:
        _read("lfm3_vl", vision_config={"layer_types": ["mamba"] * 14})
    assert raised.value.findings[0].pointer == "/vision_config/layer_types"


def test_towers_that_the_class_leaves_out_are_read_where_they_are() -> None:
    without, images = _read("gemma4"), {"model_type": "gemma4_vision"}
    whole = _read("gemma4", vision_config=images, audio_config={"model_type": "gemma4_audio"})
    assert without.towers == ()
    assert [tower.modality for tower in whole.towers] == ["vision", "audio"]
    # 16 layers of 768 features; the table has 2 x 10,240 rows; the projection gives 2,304 features.
    assert total_parameters(_read("gemma4", vision_config=images)) - total_parameters(without) == (
        16 * (4 * 768**2 + 3 * 768 * 3072 + 4 * 768 + 2 * 64) + (2 * 10240 + 768 + 2304) * 768
    )


def test_experts_of_images_are_memory_that_text_does_not_meet() -> None:
    spec = _read("ernie4_5_vl_moe")
    moe = next(kind.moe for kind in spec.layer_kinds if kind.moe is not None)
    assert (moe.expert_intermediate_size, moe.image_intermediate_size) == (1536, 512)
    idle = total_parameters(spec) - active_parameters(spec)
    assert idle == 27 * 3 * 2560 * ((64 - 6) * 1536 + 64 * 512)


def test_two_encoders_of_one_waveform_are_one_tower() -> None:
    (tower,) = _read("vibevoice_asr").towers
    assert (tower.modality, len(tower.runs), tower.tokens_per_item) == ("audio", 14, 225)


def test_a_head_is_tied_where_either_config_says_so() -> None:
    untied = {"tie_word_embeddings": False}
    assert _read("blip", **untied).tie_embeddings
    assert _read("kosmos-2", text_config=untied).tie_embeddings
    assert not _read("kosmos-2", text_config=untied, **untied).tie_embeddings


def test_scales_of_folded_patches_end_at_the_whole_patch() -> None:
    # 24 maps of a patch of 2 x 40 x 40 x 3: the last folds two frames of 4,800 features each.
    spec = _read("inkling_mm_model")
    assert spec.vision is not None
    assert spec.vision.num_layers == 0
    assert total_parameters(spec) == 1_740_191_689_202


def test_every_layer_of_a_formula_decoder_crosses_to_the_tower() -> None:
    spec = _read("pp_formulanet")
    assert [kind.attention.kind for kind in spec.layer_kinds] == ["gqa", "tower_cross"]
    assert spec.num_layers == 2 * 8
    assert spec.vision is not None
    # 32 x 32 patches, two convolutions of stride 2.
    assert spec.vision.tokens_per_image == 8 * 8
    with pytest.raises(FindingsInvalid) as raised:
        _read("pp_formulanet", vision_config={"decoder_hidden_size": 256})
    assert raised.value.findings[0].pointer == "/vision_config/decoder_hidden_size"


def test_a_codec_is_held_and_its_tokens_are_rows_of_the_token_table() -> None:
    spec = _read("kyutai_speech_to_text")
    fewer = _read("kyutai_speech_to_text", num_codebooks=31)
    assert total_parameters(spec) == 2_696_431_425
    assert total_parameters(spec) - total_parameters(fewer) == 2049 * 2048
    (codec,) = spec.entry_parts
    # All of transformers' MimiModel with its default config; the codebooks are no parameters.
    assert (codec.kind, codec.parameters) == ("held", 79_308_609)
    # As many frames as tokens: nothing between the two halves.
    equal = _read("kyutai_speech_to_text", codec_config={"frame_rate": 25.0})
    assert total_parameters(spec) - total_parameters(equal) == 4 * 512 * (512 + 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [("upsampling_ratios", [0, 4]), ("upsample_groups", 500), ("compress", 100), ("decoder_config", None)],
)
def test_impossible_codecs_are_findings(key: str, value: Any) -> None:
    with pytest.raises(FindingsInvalid) as raised:
        _read("kyutai_speech_to_text", codec_config={key: value})
    assert raised.value.findings[0].pointer == f"/codec_config/{key}"


def test_a_tied_head_has_no_rows_of_audio() -> None:
    with pytest.raises(FindingsInvalid) as raised:
        _read("kyutai_speech_to_text", tie_word_embeddings=True)
    assert raised.value.findings[0].pointer == "/tie_word_embeddings"
