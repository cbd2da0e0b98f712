"""Accelerate's files of an encoder-decoder, and who refuses one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.backends.accelerate.seq2seq_script import of_encoder_decoder
from planner.backends.accelerate.space import violations
from planner.backends.accelerate.write import training_script
from planner.backends.asked import inside
from planner.backends.deepspeed.model_config import model_config, why_not_buildable
from planner.backends.emission.layout import layout_of
from planner.backends.folders.shrink import shrink
from planner.backends.registry import backends, files_of, software
from planner.backends.rules.legality import broken_rules, model_shape
from planner.backends.rules.rule import rule_input
from planner.errors import DocumentInvalid
from planner.model.hf_config import model_from_hf_config
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.search.backend_rules import BackEndRules
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from tests.emitter import emitter
from tests.encoder_decoders import t5
from tests.plan_factory import make_plan
from tests.round_trip import question

emit = emitter("accelerate")
GOOD = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4)
WRITTEN = (
    *("t5", "mt5", "umt5", "bart", "blenderbot", "blenderbot-small", "m2m_100", "marian"),
    *("mbart", "mvp", "pegasus", "plbart"),
)


def _default(family: str) -> ModelSpec:
    return model_from_hf_config({"model_type": family}, family, "config.json")


def test_the_files_come_back_and_hold_the_source() -> None:
    workload = Workload(global_batch_size=16, sequence_length=256, source_length=64)
    plan = make_plan(GOOD, t5(), workload=workload)
    assert violations(rule_input(plan)) == []
    files = emit(plan, "torchrun").files
    assert json.loads(files["training.json"])["source_length"] == 64
    assert json.loads(files["model_config.json"])["num_decoder_layers"] == 4
    script = files["train_accelerate.py"]
    compile(script, "train_accelerate.py", "exec")
    assert "AutoModelForSeq2SeqLM.from_config" in script
    assert "AutoModelForCausalLM" not in script
    assert "shift_labels" not in script
    assert files_of(software("accelerate")).read(files) == (plan.chosen(), layout_of(plan))


def test_the_script_of_decoders_stays_as_it_is() -> None:
    files = emit(make_plan(GOOD), "torchrun").files
    assert files["train_accelerate.py"] == training_script()
    with pytest.raises(ValueError, match="does not hold this once"):
        of_encoder_decoder(training_script().replace("shift_labels", "other_labels"))


@pytest.mark.parametrize("family", WRITTEN)
def test_configs_read_back_as_the_same_model(family: str) -> None:
    model = _default(family)
    assert why_not_buildable(model) is None
    assert model_config(model)["model_type"] == family


@pytest.mark.parametrize("family", ["nllb-moe", "whisper", "t5gemma", "bert", "switch_transformers"])
def test_families_without_a_writer_are_refused_by_rule(family: str) -> None:
    found = violations(rule_input(make_plan(GOOD, _default(family))))
    assert "accelerate.M1" in {each.rule for each in found}


def test_sizes_that_the_class_cannot_be_set_to_are_refused() -> None:
    model = t5()
    other = model.layer_kinds[1].mlp
    assert other is not None
    wider = model.layer_kinds[1].model_copy(update={"mlp": other.model_copy(update={"intermediate_size": 200})})
    changed = model.model_copy(update={"layer_kinds": (model.layer_kinds[0], wider, *model.layer_kinds[2:])})
    assert "layers differ" in (why_not_buildable(changed) or "")


@pytest.mark.parametrize("name", sorted(backends()))
def test_every_other_back_end_with_files_refuses_t5_by_rule(name: str) -> None:
    backend = software(name)
    asked = question("t5-11b", "dgx-h100", 8, sequence_length=512)
    refused = BackEndRules(inside(asked, backend)).always()
    takes = name in ("accelerate", "hugging-face", "pytorch-fsdp", "unrestricted")
    assert bool(refused) != takes, refused


@pytest.mark.parametrize(
    "name", ["megatron", "megatron-bridge", "mindspeed", "torchtitan", "native", "nemo", "deepspeed"]
)
def test_tables_and_a_transform_before_the_head_are_refused(name: str) -> None:
    model = model_from_hf_config({"model_type": "megatron-bert", "is_decoder": True}, "x", "config.json")
    rules = software(name).release.space.rules
    given = replace(rule_input(make_plan(GOOD)), model=model)
    assert any("added tables or a transform" in each.message for each in rules.violations(given))


def test_there_is_no_small_form() -> None:
    with pytest.raises(DocumentInvalid, match="no small form"):
        shrink(make_plan(GOOD, t5()), 4)


def test_neither_stages_nor_context_parallelism_are_legal() -> None:
    workload = Workload(global_batch_size=16, sequence_length=256)
    shape = model_shape(t5(), workload, 4)
    for strategy, reason in (
        (replace(GOOD, dp_shard=2, pp=2), "encoder_pipeline"),
        (replace(GOOD, dp_shard=2, cp=2, cp_kind="ring"), "encoder_context"),
        (GOOD, None),
    ):
        rows = StrategyRows.of([strategy], (Relief(),))
        broken = {rule.reason for rule, mask in broken_rules(rows, shape) if mask.any()}
        assert (reason in broken) if reason else not {"encoder_pipeline", "encoder_context"} & broken
