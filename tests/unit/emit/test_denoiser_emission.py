"""Accelerate's files of a diffusion transformer, its small form, and who refuses one."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from planner.backends.accelerate.denoiser_script import of_denoiser
from planner.backends.accelerate.space import violations
from planner.backends.accelerate.write import training_script
from planner.backends.asked import inside
from planner.backends.deepspeed.denoiser_config import SPLIT_CLASSES, sample_shape
from planner.backends.deepspeed.model_config import why_not_buildable
from planner.backends.emission.layout import layout_of
from planner.backends.folders.shrink import on_one_rank, shrink
from planner.backends.registry import backends, files_of, software
from planner.backends.rules.legality import broken_rules, model_shape
from planner.backends.rules.rule import rule_input
from planner.model.builtin import builtin_model
from planner.model.diffusers_config import DENOISERS, model_from_diffusers_config
from planner.model.operators import layer_operators
from planner.model.spec import ModelSpec
from planner.operations.estimate import estimated
from planner.predict.cost.payload import exchanges
from planner.predict.cost.two_sequences import own_keys
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys, rows_of
from planner.question.problem import Constraints, Workload
from planner.search.backend_rules import BackEndRules
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.round_trip import question

emit = emitter("accelerate")
GOOD = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4)
WITHOUT_FILES = ("hugging-face", "pytorch-fsdp", "unrestricted")


def _read(kind: str, **keys: Any) -> ModelSpec:
    return model_from_diffusers_config({"_class_name": kind, **keys}, "m", "config.json")


def _workload(model: ModelSpec, **changes: Any) -> Workload:
    assert model.denoiser is not None
    usual: dict[str, Any] = {"sequence_length": model.max_sequence_length, "sample": model.denoiser.usual_sample}
    return Workload(**({"global_batch_size": 16} | usual | changes))


@pytest.mark.parametrize("kind", DENOISERS)
def test_the_files_come_back_and_hold_a_sample(kind: str) -> None:
    model = _read(kind)
    plan = make_plan(GOOD, model, workload=_workload(model))
    assert violations(rule_input(plan)) == []
    files = emit(plan, "torchrun").files
    assert json.loads(files["model_config.json"])["_class_name"] == kind
    sample, denoiser = json.loads(files["training.json"])["sample"], model.denoiser
    assert denoiser is not None
    text = denoiser.text_tokens if denoiser.text_in_sequence else 0
    assert prod(sample["grid"]) + text == plan.problem.workload.sequence_length
    script = files["train_accelerate.py"]
    compile(script, "train_accelerate.py", "exec")
    for gone in ("transformers", "peft", "vocab", "tokens, following", "@"):
        assert gone not in script
    assert files_of(software("accelerate")).read(files) == (plan.chosen(), layout_of(plan))


@pytest.mark.parametrize(
    ("kind", "keys", "zero_stage", "looked_for"),
    [
        ("QwenImageTransformer2DModel", {}, 0, True),
        ("QwenImageTransformer2DModel", {}, 3, False),  # FSDP2 reduces the gradients that are there
        ("FluxTransformer2DModel", {"num_single_layers": 0}, 0, True),
        ("FluxTransformer2DModel", {}, 0, False),  # single layers read the text
        ("SD3Transformer2DModel", {}, 0, False),  # its last layer makes no text
        ("WanTransformer3DModel", {}, 0, False),
    ],
)
def test_ddp_looks_for_weights_without_gradient(
    kind: str, keys: dict[str, Any], zero_stage: int, looked_for: bool
) -> None:
    model = _read(kind, **keys)
    plan = make_plan(replace(GOOD, zero_stage=zero_stage), model, workload=_workload(model))
    assert ("find_unused_parameters=True" in emit(plan, "torchrun").files["train_accelerate.py"]) == looked_for


def test_a_piece_that_is_gone_is_told() -> None:
    with pytest.raises(ValueError, match="does not hold this"):
        of_denoiser(training_script().replace("class Samples:", "class Others:"), "WanTransformer3DModel")


@pytest.mark.parametrize(
    ("kind", "keys", "sample", "grid", "shape"),
    [
        ("WanTransformer3DModel", {}, (81, 480, 832), (21, 30, 52), (16, 21, 60, 104)),
        ("WanTransformer3DModel", {"patch_size": [2, 2, 2], "in_channels": 36}, (45, 480, 832), (6, 30, 52), None),
        ("LTXVideoTransformer3DModel", {}, (121, 512, 768), (16, 16, 24), (6144, 128)),
        ("SD3Transformer2DModel", {}, (1, 768, 1344), (1, 48, 84), (16, 96, 168)),
    ],
)
def test_latents_have_the_sides_of_the_sample(
    kind: str,
    keys: dict[str, Any],
    sample: tuple[int, int, int],
    grid: tuple[int, int, int],
    shape: tuple[int, ...] | None,
) -> None:
    model = _read(kind, **keys)
    assert model.denoiser is not None
    tokens = model.denoiser.sample_tokens(*sample)
    plan = make_plan(GOOD, model, workload=_workload(model, sample=sample, sequence_length=tokens))
    found = json.loads(emit(plan, "torchrun").files["training.json"])["sample"]
    assert found["grid"] == list(grid)
    assert found["shape"] == list(shape or (36, 12, 60, 104))
    assert sample_shape(model.denoiser, grid) == tuple(found["shape"])


@pytest.mark.parametrize(
    ("model", "changes", "rule"),
    [
        (builtin_model("wan-2.1-14b"), {"sample": None}, "accelerate.A16"),
        (
            _read("SD3Transformer2DModel", pos_embed_max_size=64),
            {"sample": (1, 1040, 1024), "sequence_length": 4493},
            "accelerate.A16",
        ),
        (_read("AuraFlowTransformer2DModel"), {"sample": (1, 528, 512), "sequence_length": 1320}, "accelerate.A16"),
        (_read("CogVideoXTransformer3DModel"), {"source_length": 77, "sequence_length": 17627}, "accelerate.A16"),
    ],
)
def test_what_the_script_cannot_feed_is_refused_by_rule(model: ModelSpec, changes: dict[str, Any], rule: str) -> None:
    plan = make_plan(GOOD, model, workload=_workload(model, **changes))
    assert rule in {each.rule for each in violations(rule_input(plan))}


def test_a_model_that_the_class_cannot_be_set_to_is_refused() -> None:
    model = builtin_model("wan-2.1-14b")
    layer = model.layer_kinds[0]
    assert layer.mlp is not None
    wider = layer.model_copy(update={"mlp": layer.mlp.model_copy(update={"intermediate_size": 64})})
    assert "diffusers class" in (why_not_buildable(model.model_copy(update={"layer_kinds": (wider,)})) or "")


@pytest.mark.parametrize("name", sorted(backends()))
def test_every_other_back_end_with_files_refuses_wan_by_rule(name: str) -> None:
    asked = question("wan-2.1-14b", "dgx-h100", 8, sequence_length=32760, sample=(81, 480, 832))
    refused = BackEndRules(inside(asked, software(name))).always()
    assert bool(refused) != (name in ("accelerate", *WITHOUT_FILES)), refused


@pytest.mark.parametrize("kind", DENOISERS)
def test_the_small_form_is_of_the_same_class(kind: str) -> None:
    model = _read(kind)
    small = shrink(make_plan(replace(GOOD, dp_shard=8), model, workload=_workload(model)), 2).plan
    assert small.problem.model.family == kind
    assert small.problem.model.hidden_size == 64
    assert why_not_buildable(small.problem.model) is None
    assert on_one_rank(small).chosen().world_size == 1


def test_stages_are_not_legal() -> None:
    model = builtin_model("wan-2.1-14b")
    shape = model_shape(model, _workload(model), 4)
    for strategy, legal in ((replace(GOOD, dp_shard=2, pp=2), False), (GOOD, True)):
        rows = StrategyRows.of([strategy], (Relief(),))
        broken = {rule.reason for rule, mask in broken_rules(rows, shape) if mask.any()}
        assert ("denoiser_pipeline" not in broken) == legal


@pytest.mark.parametrize("kind", DENOISERS)
def test_ranks_share_the_tokens_of_classes_that_say_how(kind: str) -> None:
    model = _read(kind)
    shared = replace(GOOD, dp_shard=2, num_microbatches=8, cp=2, cp_kind="all_to_all")
    plan = make_plan(shared, model, workload=_workload(model))
    found = {each.rule for each in violations(rule_input(plan))}
    assert found == (set() if kind in SPLIT_CLASSES else {"accelerate.A17"})
    if not found:
        files = emit(plan, "torchrun").files
        assert "split_tokens(model, accelerator, mesh[" in files["train_accelerate.py"]
        compile(files["train_accelerate.py"], "train_accelerate.py", "exec")
        assert files_of(software("accelerate")).read(files) == (plan.chosen(), layout_of(plan))


@pytest.mark.parametrize(
    ("strategy", "changes", "rule"),
    [
        (replace(GOOD, dp_shard=2, num_microbatches=8, cp=2, cp_kind="ring"), {}, "P4"),
        (replace(GOOD, zero_stage=0, cp=2, cp_kind="all_to_all"), {}, "A6"),
        (
            replace(GOOD, dp_shard=2, num_microbatches=8, cp=2, cp_kind="all_to_all"),
            {"source_length": 77, "sequence_length": 4173},
            "A17",
        ),
    ],
)
def test_what_ranks_cannot_share_is_refused(strategy: Strategy, changes: dict[str, Any], rule: str) -> None:
    model = _read("FluxTransformer2DModel")
    plan = make_plan(strategy, model, workload=_workload(model, **changes))
    assert f"accelerate.{rule}" in {each.rule for each in violations(rule_input(plan))}


def test_sharing_tokens_sends_what_self_attention_trades_and_keeps_the_text_whole() -> None:
    """Forward, a rank trades queries, keys, values and output of self-attention; cross-attention sends nothing."""
    asked = question("wan-2.1-14b", "dgx-h100", 8, sequence_length=32760, sample=(81, 480, 832))
    asked = asked.model_copy(update={"constraints": Constraints(backends=("accelerate",))})
    model, workload = asked.model, asked.workload
    plan = estimated(asked, {"dp_shard": 4, "cp": 2, "zero_stage": 3, "recompute": "full"}).plan
    assert plan.chosen().cp_kind == "all_to_all"
    layer = {each.name: each for each in layer_operators(model, 0)}
    columns = {name: np.ones(1) for name in KEY_COLUMNS} | {"cp": np.full(1, 2.0), "ring": np.zeros(1)}
    keys = own_keys(model, workload, LayerKeys(**columns, sequence_length=32760))
    sent = sum(
        each.size_bytes.sum() for each in exchanges(layer["attention_core"], keys, narrow=0.0) if each.forward.any()
    )
    assert sent == 4 * 2 * 32760 / 2 * model.hidden_size
    assert not any(each.forward.any() for each in exchanges(layer["cross_core"], keys, narrow=0.0))
    assert rows_of(layer["cross_key_values"], keys).tokens == 512
