"""Towers of any modality stand in the same places as the vision tower."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner.model.builtin import builtin_model
from planner.model.flops import tower_flops_per_item, vision_flops_per_image
from planner.model.parameters import parameters_by_module, total_parameters, tower_parameters
from planner.model.spec import ModelSpec, TowerSpec


def as_audio(model: ModelSpec) -> ModelSpec:
    """The same model with its vision tower called an audio tower."""
    vision = model.vision
    assert vision is not None
    tower = TowerSpec(
        modality="audio",
        runs=vision.runs,
        tokens_per_item=vision.tokens_per_item,
        extra_parameters=vision.extra_parameters,
        ends_flops_per_item=vision.ends_flops_per_item,
    )
    return model.model_copy(update={"vision": None, "further_towers": (tower,)})


def test_a_vision_tower_is_a_tower_with_the_same_sums() -> None:
    model = builtin_model("qwen2.5-vl-7b")
    other = as_audio(model)
    assert [run.count for run in other.further_towers[0].runs] == [4, 28]
    assert total_parameters(other) == total_parameters(model)
    assert parameters_by_module(other)["audio"] == parameters_by_module(model)["vision"]
    assert tower_flops_per_item(other.further_towers[0]) == vision_flops_per_image(model) > 0


def test_two_towers_add_up() -> None:
    model = builtin_model("qwen2.5-vl-7b")
    both = model.model_copy(update={"further_towers": as_audio(model).further_towers})
    assert len(both.towers) == 2
    assert total_parameters(both) == total_parameters(model) + tower_parameters(both.further_towers[0])


def test_models_without_further_towers_are_written_as_before() -> None:
    assert "further_towers" not in builtin_model("qwen2.5-vl-7b").model_dump(mode="json")
    both = as_audio(builtin_model("qwen2.5-vl-7b"))
    assert ModelSpec.model_validate_json(both.model_dump_json()) == both


def test_one_tower_a_modality() -> None:
    model = as_audio(builtin_model("qwen2.5-vl-7b"))
    said = model.model_dump(mode="json")
    said["further_towers"] *= 2
    with pytest.raises(ValidationError, match="one tower a modality"):
        ModelSpec.model_validate(said)
