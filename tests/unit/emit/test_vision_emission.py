"""Models behind a vision tower, trained through Accelerate: config, script, samples, rules and small form."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.backends.accelerate.read import read_back
from planner.backends.accelerate.space import violations
from planner.backends.accelerate.training_document import TRAINING_FILE, ImageSample, read_training
from planner.backends.accelerate.write import TRAIN_SCRIPT
from planner.backends.deepspeed.model_config import model_config, why_not_buildable
from planner.backends.deepspeed.write import MODEL_CONFIG_FILE
from planner.backends.folders.shrink import shrink
from planner.backends.rules.rule import rule_input
from planner.model.load import load_model, model_from_data
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.round_trip import as_spelled

GOOD = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4)
MODEL = load_model("qwen2.5-vl-7b")
TEXT = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
CONFIGS: dict[str, dict[str, Any]] = {
    "qwen2_vl": {"embed_dim": 32, "hidden_size": 64, "depth": 4, "num_heads": 2},
    "qwen2_5_vl": {
        "hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 64, "depth": 4, "num_heads": 2,
        "fullatt_block_indexes": [1, 3],
    },
    "qwen3_vl": {
        "hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 64, "depth": 4, "num_heads": 2,
        "deepstack_visual_indexes": [0, 1, 2],
    },
}  # fmt: skip
CONFIGS["qwen3_vl_moe"] = CONFIGS["qwen3_vl"]
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


def model(family: str) -> ModelSpec:
    text = TEXT | {"num_key_value_heads": 2, "vocab_size": 1000, "head_dim": 16}
    text |= EXPERTS if family.endswith("moe") else {}
    return model_from_data(
        {"model_type": family, "text_config": text, "vision_config": CONFIGS[family]}, f"small-{family}", "test"
    )


def planned(strategy: Strategy = GOOD, behind: ModelSpec = MODEL, **work: Any) -> Plan:
    said = {"global_batch_size": strategy.global_batch_size, "sequence_length": 4096, "images_per_sample": 3} | work
    return as_spelled(make_plan(strategy, behind, workload=Workload.model_validate(said)), "accelerate")


def broken(plan: Plan) -> dict[str, str]:
    return {finding.rule.removeprefix("accelerate."): finding.message for finding in violations(rule_input(plan))}


@pytest.mark.parametrize("family", CONFIGS)
def test_the_config_is_read_back_as_the_same_model(family: str) -> None:
    assert why_not_buildable(model(family)) is None


def test_other_places_of_windows_and_sizes_of_patches_are_refused() -> None:
    vision = model("qwen2_5_vl").vision
    assert vision is not None
    larger = vision.model_copy(update={"patches_per_image": 1024})
    told = why_not_buildable(model("qwen2_5_vl").model_copy(update={"vision": larger}))
    assert told is not None
    assert told.endswith("vision differ")


@pytest.mark.parametrize("family", CONFIGS)
def test_marks_are_tokens_of_the_vocabulary_and_rotary_sections_fill_a_head(family: str) -> None:
    config = model_config(model(family))
    marks = [config[name] for name in ("image_token_id", "video_token_id", "vision_start_token_id")]
    assert len(set(marks)) == 3
    assert max(marks) < 1000
    assert sum(config["text_config"]["rope_parameters"]["mrope_section"]) == 8


def test_published_marks_and_sections() -> None:
    config = model_config(MODEL)
    assert (config["image_token_id"], config["vision_config"]["fullatt_block_indexes"]) == (151655, [7, 15, 23, 31])
    assert config["text_config"]["rope_parameters"]["mrope_section"] == [16, 24, 24]


@pytest.mark.parametrize(("zero_stage", "overlaps"), [(0, (True, False)), (1, (False, False)), (3, (True, True))])
def test_files_say_the_plan_and_its_images(zero_stage: int, overlaps: tuple[bool, bool]) -> None:
    reduce, gather = overlaps
    changes: dict[str, Any] = {"zero_stage": zero_stage, "overlap_grad_reduce": reduce, "overlap_param_gather": gather}
    plan = planned(replace(GOOD, **changes))
    files = dict(emitter("accelerate")(plan, "torchrun").files)
    strategy, _ = read_back(files)
    assert strategy == plan.chosen()
    training = read_training(files[TRAINING_FILE])
    assert training.model_dump()["images"] == ImageSample(per_sample=3, patches=4096, tokens=1024).model_dump()
    assert json.loads(files[MODEL_CONFIG_FILE])["model_type"] == "qwen2_5_vl"
    compile(files[TRAIN_SCRIPT], TRAIN_SCRIPT, "exec")
    assert "AutoModelForImageTextToText" in files[TRAIN_SCRIPT]


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ({"images_per_sample": 0}, "say it with --images N"),
        ({"images_per_sample": 0, "image_counts": {"mean": 1.5}}, "say it with --images N"),
        ({"images_per_sample": 4}, "do not fit a sample of 4,096"),
        ({"training": {"kind": "lora"}}, "trains all weights"),
    ],
)
def test_samples_that_the_script_does_not_feed(work: dict[str, Any], told: str) -> None:
    assert told in broken(planned(**work))["M3"]


def test_another_familys_images_are_not_fed() -> None:
    assert "ask `meshwright towers`" in broken(planned(behind=MODEL.model_copy(update={"family": "llava"})))["M3"]


def test_context_parallelism_and_pipelines_are_refused() -> None:
    assert "A20" in broken(planned(replace(GOOD, dp_shard=2, cp=2, cp_kind="ring")))
    assert "A20" not in broken(planned())


def test_a_frozen_tower_is_frozen_by_the_script() -> None:
    plan = planned(training={"kind": "full", "frozen_towers": ["vision"]})
    assert broken(plan) == {}
    script = emitter("accelerate")(plan, "torchrun").files[TRAIN_SCRIPT]
    assert "model.base_model.visual.requires_grad_(False)" in script


@pytest.mark.parametrize("family", CONFIGS)
def test_the_small_form_keeps_tower_and_images(family: str) -> None:
    small = shrink(planned(behind=model(family), sequence_length=8192), max_ranks=2).plan.problem
    assert small.model.vision is not None
    assert (small.model.vision.num_layers, small.workload.images_per_sample) == (2, 1)
    assert small.workload.sequence_length > small.model.vision.tokens_per_image
    assert why_not_buildable(small.model) is None
