"""Adapters and preference pairs through Accelerate: files, rules, and reading them back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.backends.accelerate.read import read_back
from planner.backends.accelerate.space import violations
from planner.backends.accelerate.training_document import TRAINING_FILE
from planner.backends.deepspeed.adapters import ADAPTER_FILE
from planner.backends.rules.rule import rule_input
from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.question.training import Training
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_model, make_plan
from tests.round_trip import as_spelled

emit = emitter("accelerate")
SHARDED = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4)
PLAIN = replace(SHARDED, zero_stage=0)


def plan_of(said: dict[str, Any], s: Strategy = SHARDED, model: ModelSpec | None = None) -> Plan:
    workload = Workload(
        global_batch_size=s.global_batch_size, sequence_length=4096, training=Training.model_validate(said)
    )
    cluster = make_cluster(s.world_size, devices_per_node=s.world_size)
    plan = make_plan(s, model or make_model(num_kv_heads=4), cluster, workload, backend="accelerate", release="1.15.0")
    return as_spelled(plan, "accelerate")


def rules_of(said: dict[str, Any], s: Strategy = SHARDED, model: ModelSpec | None = None) -> set[str]:
    return {finding.rule for finding in violations(rule_input(plan_of(said, s, model)))}


def test_the_adapters_file_is_pefts_and_comes_back() -> None:
    plan = plan_of({"kind": "qlora", "rank": 64, "targets": "q,v,down", "dora": True})
    files = emit(plan, "torchrun").files
    said = json.loads(files[ADAPTER_FILE])
    assert (said["peft_type"], said["r"], said["use_dora"]) == ("LORA", 64, True)
    assert said["target_modules"] == ["q_proj", "v_proj", "down_proj"]
    assert json.loads(files[TRAINING_FILE])["training"]["kind"] == "qlora"
    strategy, _ = read_back(files)
    assert strategy == plan.chosen()


def test_without_adapters_there_is_no_such_file() -> None:
    files = emit(plan_of({"kind": "full"}), "torchrun").files
    assert ADAPTER_FILE not in files
    assert "training" in json.loads(files[TRAINING_FILE])


@pytest.mark.parametrize("name", ["r", "target_modules", "use_dora"])
def test_another_adapters_file_contradicts_the_plan(name: str) -> None:
    files = dict(emit(plan_of({"kind": "lora"}), "torchrun").files)
    said = json.loads(files[ADAPTER_FILE])
    said[name] = {"r": 8, "target_modules": ["q_proj"], "use_dora": True}[name]
    with pytest.raises(DocumentInvalid, match=name):
        read_back(files | {ADAPTER_FILE: json.dumps(said)})
    del files[ADAPTER_FILE]
    with pytest.raises(DocumentInvalid, match="missing"):
        read_back(files)


BROKEN: dict[str, tuple[dict[str, Any], Strategy]] = {
    "K1": ({"kind": "full", "task": "reward"}, SHARDED),
    "L2": ({"kind": "lora", "ends": True}, SHARDED),
    "L3": ({"kind": "full", "task": "dpo", "reference": "offloaded"}, SHARDED),
    "L4": ({"kind": "lora"}, replace(SHARDED, cp=2, cp_kind="ring")),
    "L5": ({"kind": "qlora", "base": "int8"}, SHARDED),
    "L6": ({"kind": "full", "task": "dpo"}, replace(SHARDED, optimizer_offload=True)),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_what_the_script_cannot_run_is_refused(rule: str) -> None:
    said, s = BROKEN[rule]
    model = make_model(num_kv_heads=4, tie_embeddings=rule == "L2")
    assert f"accelerate.{rule}" in rules_of(said, s, model)


def test_a_family_with_other_names_is_refused() -> None:
    model = make_model().model_copy(update={"family": "falcon"})
    assert "accelerate.L1" in rules_of({"kind": "lora"}, model=model)
    assert "accelerate.L1" not in rules_of({"kind": "full"}, model=model)


@pytest.mark.parametrize(
    "said",
    [{"kind": "lora"}, {"kind": "qlora"}, {"kind": "full", "task": "dpo"}, {"kind": "lora", "task": "orpo"}],
    ids=str,
)
def test_what_the_script_can_run_is_not(said: dict[str, Any]) -> None:
    for s in (SHARDED, PLAIN):
        assert not {rule for rule in rules_of(said, s) if rule.split(".")[1][0] in "KL"}
