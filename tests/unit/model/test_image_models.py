"""Models that read images: what is absent, what is not read, and what stands beside the layers of a tower."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.hf_config import model_from_hf_config
from planner.model.hf_config.image_parts import attention, convolution, linear, mlp
from planner.model.parameters import total_parameters
from profiles.errors import MeshwrightError
from profiles.validation import FindingsInvalid


def _read(model_type: str, **keys: Any) -> Any:
    return model_from_hf_config({"model_type": model_type, **keys}, "model", "config.json")


def test_absent_parts_are_those_that_the_class_makes() -> None:
    # VipLlavaConfig makes a CLIP of 1,024 features and 24 layers where it is given none; CLIP's own default is smaller.
    absent, given = _read("vipllava"), _read("vipllava", vision_config={"model_type": "clip_vision_model"})
    assert (absent.vision.hidden_size, absent.vision.num_layers) == (1024, 24)
    assert (given.vision.hidden_size, given.vision.num_layers) == (768, 12)


def test_a_key_of_the_tower_that_is_not_read_is_named() -> None:
    with pytest.raises(FindingsInvalid) as raised:
        _read("hunyuan_vl", vision_config={"temporal_patch_size": 2, "text_hidden_size": 4096})
    assert [finding.pointer for finding in raised.value.findings] == ["/vision_config/temporal_patch_size"]
    with pytest.raises(FindingsInvalid) as raised:
        _read("nemotron_h_omni", audio_config={"hidden_size": 8})
    assert raised.value.findings[0].pointer == "/audio_config"


def test_a_tower_of_another_kind_is_refused() -> None:
    with pytest.raises(MeshwrightError, match="not a tower that is read"):
        _read("aria", vision_config={"model_type": "swin"})


def test_an_encoder_in_the_language_model_is_refused() -> None:
    with pytest.raises(FindingsInvalid) as raised:
        _read("blip-2", use_decoder_only_language_model=False)
    assert raised.value.findings[0].pointer == "/use_decoder_only_language_model"


def test_a_projected_patch_is_a_tower_of_no_layers() -> None:
    spec = _read("fuyu")
    assert (spec.vision.num_layers, spec.vision.tokens_per_image) == (0, 100)
    assert spec.vision.extra_parameters == 2700 * 4096 + 4096
    assert total_parameters(spec) == 9_408_238_592


def test_layers_behind_a_merger_see_fewer_patches() -> None:
    merged, whole = _read("minicpmv4_6"), _read("minicpmv4_6", downsample_mode="4x")
    assert total_parameters(merged) == total_parameters(whole)
    assert (merged.vision.num_layers, whole.vision.num_layers) == (7, 12)
    assert (merged.vision.tokens_per_image, whole.vision.tokens_per_image) == (196, 784)


def test_parts_count_two_flops_a_multiply_add() -> None:
    assert linear(3, 5, 7).flops == 2 * 3 * 5 * 7
    assert mlp(3, 5, 2, 7, gated=True, bias=False).parameters == 3 * 5 * 2 + 5 * 2
    assert convolution(3, 5, 9, 7, bias=True).parameters == 3 * 5 * 9 + 5
    crossing = attention(4, 2, 6, key_width=3, windows=5)
    assert crossing.parameters == 2 * (4 * 4 + 4) + 2 * (3 * 4 + 4)
    assert crossing.flops == 5 * (2 * 2 * 2 * 4 * 4 + 2 * 2 * 6 * 3 * 4 + 4 * 2 * 6 * 4)
