"""The real ``DeepSpeedConfig`` agrees with our rules: emitted configs, and configs edited by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.backends.checking.worker import Worker
from planner.backends.deepspeed.config import ds_config
from planner.backends.deepspeed.config_keys import KEYS, config_findings
from planner.backends.deepspeed.space import TABLE
from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.rules.rule import rule_input
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_model, make_moe_model, make_plan
from tests.validators import SharedWorkers

pytestmark = pytest.mark.slow

PLAIN = Strategy(dp_shard=8, num_microbatches=4, overlap_grad_reduce=False, overlap_param_gather=False)
PIPELINE = replace(PLAIN, pp=4, dp_shard=2)
ULYSSES = replace(PLAIN, cp=2, cp_kind="all_to_all", dp_shard=4)


class DeepSpeed:
    """The warm validator, asked for its first stage only."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def ask(self, config: dict[str, Any], world_size: int, data_parallel_size: int) -> dict[str, Any]:
        """What ``DeepSpeedConfig`` says when the batch is divided over so many ranks."""
        mesh = {"pipe": 1, "data_replicate": 1, "data_shard": data_parallel_size, "sequence": 1}
        training = {"mesh": mesh | {"tensor": world_size // data_parallel_size}}
        request = {"config": json.dumps(config), "training": json.dumps(training), "model": "{}"}
        verdict = self.worker.ask(request | {"world_size": world_size, "until": "config"})
        assert verdict.stage == ("ok" if verdict.accepted else "config")
        return {"refused": None if verdict.accepted else verdict.message, "facts": verdict.facts}


@pytest.fixture(scope="module")
def deepspeed(shared_workers: SharedWorkers) -> DeepSpeed:
    return DeepSpeed(shared_workers.worker("deepspeed"))


def test_the_checked_version_is_the_one_that_the_rules_are_written_for(deepspeed: DeepSpeed) -> None:
    assert deepspeed.worker.version == DEEPSPEED_VERSION


Case = tuple[Strategy, ModelSpec | None, dict[str, Any]]
PLANS: dict[str, Case] = {
    "zero 0, bf16 gradients": (replace(PLAIN, zero_stage=0), None, {"gradient_dtype": "bf16"}),
    "zero 1": (PLAIN, None, {}),
    "zero 1, overlap": (replace(PLAIN, overlap_grad_reduce=True), None, {"gradient_dtype": "bf16"}),
    "zero 2": (replace(PLAIN, zero_stage=2, overlap_grad_reduce=True), None, {}),
    "zero 3, no overlap": (replace(PLAIN, zero_stage=3), None, {}),
    "zero 3, no prefetch": (replace(PLAIN, zero_stage=3, overlap_grad_reduce=True), None, {}),
    "zero 3": (replace(PLAIN, zero_stage=3, overlap_grad_reduce=True, overlap_param_gather=True), None, {}),
    "offload 1": (replace(PLAIN, optimizer_offload=True), None, {}),
    "offload 3": (replace(PLAIN, zero_stage=3, optimizer_offload=True), None, {}),
    "fp16": (PLAIN, None, {"precision": "fp16"}),
    "fp16, half gradients": (PLAIN, None, {"precision": "fp16", "gradient_dtype": "bf16"}),
    "tp": (replace(PLAIN, tp=4, dp_shard=2), None, {}),
    "tp, zero 3, overlap": (replace(PLAIN, tp=8, dp_shard=1, zero_stage=3, overlap_tp=True), None, {}),
    "ulysses": (ULYSSES, None, {}),
    "ulysses, zero 3": (replace(ULYSSES, zero_stage=3), None, {}),
    "pipeline": (PIPELINE, None, {}),
    "pipeline, zero 0": (replace(PIPELINE, zero_stage=0), None, {"gradient_dtype": "bf16"}),
    "dualpipev": (replace(PIPELINE, schedule="dualpipev", vpp=2, num_microbatches=8), None, {}),
    "experts": (replace(PLAIN, ep=4), make_moe_model(), {}),
    "experts, zero 3": (replace(PLAIN, ep=8, zero_stage=3), make_moe_model(), {}),
    "sgd": (PLAIN, None, {"optimizer": "sgd"}),
    "muon": (PLAIN, None, {"optimizer": "muon"}),
    "larger micro-batch": (replace(PLAIN, micro_batch_size=4, num_microbatches=1), None, {}),
    "batch identity broken": (PLAIN, None, {"global_batch_size": 31}),
    "batch of all ranks": (replace(PLAIN, tp=4, dp_shard=2), None, {"global_batch_size": 32}),
    "stage 4": (replace(PLAIN, zero_stage=4), None, {}),
    "reduced states without zero": (replace(PLAIN, zero_stage=0), None, {"optimizer": "adam_bf16_states"}),
}
PARSER_RULES = {"deepspeed.C1", "deepspeed.C2"}
"""Rules of the plan that the parser itself enforces; reduced states (E10) it refuses only without ZeRO."""

UNENFORCED = {"pipeline, zero 0": {"deepspeed.T4"}}
"""What the parser takes and the rules do not: the engine then runs another optimizer (runtime/engine.py:2316-2320)."""


@pytest.mark.parametrize("name", PLANS)
def test_the_parser_takes_what_the_rules_take_and_reads_what_was_planned(name: str, deepspeed: DeepSpeed) -> None:
    strategy, model, changes = PLANS[name]
    values: dict[str, Any] = {"global_batch_size": strategy.global_batch_size, "sequence_length": 4096} | changes
    plan = make_plan(strategy, model or make_model(), workload=Workload(**values))
    config = ds_config(plan)
    answer = deepspeed.ask(config, strategy.world_size, strategy.dp)
    found = {finding.rule for finding in TABLE.violations(rule_input(plan))}
    refused = bool(found & PARSER_RULES) or ("deepspeed.E10" in found and strategy.zero_stage == 0)
    assert (answer["refused"] is not None) == refused, (answer, found)
    parsed = {finding.rule for finding in config_findings(config, strategy.dp)}
    assert any(rule.startswith("deepspeed.F") for rule in parsed) == refused, parsed
    if refused:
        return
    assert found == UNENFORCED.get(name, set())
    facts = answer["facts"]
    assert facts["train_batch_size"] == strategy.global_batch_size
    assert facts["micro_batch_size"] == strategy.micro_batch_size
    assert facts["num_microbatches"] == strategy.num_microbatches
    assert facts["zero_stage"] == strategy.zero_stage
    assert facts["overlap_comm"] == strategy.overlap_grad_reduce
    assert strategy.zero_stage != 3 or (facts["prefetch"] > 0) == strategy.overlap_param_gather
    assert facts["offload"] == ("cpu" if strategy.optimizer_offload else "none")
    assert (facts["tp"], facts["ep"], facts["overlap_tp"]) == (strategy.tp, strategy.ep, strategy.overlap_tp)
    assert facts["stages"] == (strategy.pp if strategy.pp > 1 else "auto")
    assert (facts["bf16"], facts["fp16"]) == ((False, True) if "fp16" in name else (True, False))


def zero(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda config: config["zero_optimization"].update(values)


def top(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda config: config.update(values)


EDITS: dict[str, tuple[Callable[[dict[str, Any]], None], set[str]]] = {
    "unknown zero key": (zero(bogus=1), {"F3"}),
    "mics": (zero(mics_shard_size=2), {"F1"}),
    "stage 5": (zero(stage=5), {"F7"}),
    "loco": (zero(zeropp_loco_param={}), {"F1"}),
    "ratio below 1 with stage 1": (zero(offload_optimizer={"device": "cpu", "ratio": 0.5}), {"F10"}),
    "ratio below 1 with stage 3": (zero(stage=3, offload_optimizer={"device": "cpu", "ratio": 0.5}), set()),
    "unknown device": (zero(offload_optimizer={"device": "ssd"}), {"F9"}),
    "no norm with stage 3": (zero(stage=3, compute_grad_norm=False), {"F8"}),
    "no norm with stage 2": (zero(stage=2, compute_grad_norm=False), set()),
    "hpz": (zero(stage=3, zero_hpz_partition_size=8, zero_quantized_weights=True), set()),
    "elasticity": (top(elasticity={"enabled": True}), {"F1"}),
    "sparse attention": (top(sparse_attention={}), {"F1"}),
    "curriculum": (top(curriculum_learning={}), {"F1"}),
    "amp": (top(amp={"enabled": False}), {"F1"}),
    "both precisions": (top(fp16={"enabled": True}), {"F5"}),
    "unknown fp16 key": (top(fp16={"enabled": False, "bogus": 1}), {"F3"}),
    "unknown tensor key": (top(tensor_parallel={"autotp_size": 2, "bogus": 1}), {"F3"}),
    "bf16 states alone": (top(bf16={"enabled": True, "bf16_optimizer_states": True}), {"F6"}),
    "bf16 states": (
        top(bf16={"enabled": True, "bf16_optimizer_states": True, "bf16_master_weights_and_grads": True}),
        set(),
    ),
    "wrong batch": (top(train_batch_size=33), {"F4"}),
    "negative batch": (top(train_micro_batch_size_per_gpu=-1), {"F4"}),
}
SWALLOWED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "unknown top key": (top(bogus=1), "S1"),
    "unknown expert key": (top(expert_parallel={"enabled": True, "ep_size": 8}), "S1"),
    "tp.tp_size": (top(tensor_parallel={"tp": {"tp_size": 4}}), "F3"),
    "nvme without path": (zero(stage=3, offload_optimizer={"device": "nvme"}), "S3"),
    "no precision": (top(bf16={"enabled": False}), "S2"),
    "offload without zero": (zero(stage=0, offload_optimizer={"device": "cpu"}), "S4"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_configs_get_the_verdict_of_the_parser(name: str, deepspeed: DeepSpeed) -> None:
    change, expected = EDITS[name]
    config = ds_config(make_plan(PLAIN))
    change(config)
    found = {finding.rule.removeprefix("deepspeed.") for finding in config_findings(config, 8)}
    answer = deepspeed.ask(config, 8, 8)
    assert found == expected, answer
    assert (answer["refused"] is not None) == bool(expected), answer


@pytest.mark.parametrize("name", SWALLOWED)
def test_we_refuse_what_the_parser_swallows(name: str, deepspeed: DeepSpeed) -> None:
    change, expected = SWALLOWED[name]
    config = ds_config(make_plan(PLAIN))
    change(config)
    answer = deepspeed.ask(config, 8, 8)
    assert answer["refused"] is None, answer
    assert expected in {finding.rule.removeprefix("deepspeed.") for finding in config_findings(config, 8)}
    if name == "tp.tp_size":
        assert answer["facts"]["tp"] == 1


def test_every_allowed_key_inside_closed_sections_is_one_that_the_parser_knows(deepspeed: DeepSpeed) -> None:
    values: dict[str, Any] = {
        "offload_param": {"device": "none"},
        "offload_optimizer": {"device": "none"},
        "stage": 1,
        "autotp_size": 2,
        "vocab_parallel_lm_head": None,
        "compute_grad_norm": True,
        "bf16_optimizer_states": False,
        "bf16_master_weights_and_grads": False,
    }
    for section in ("zero_optimization", "tensor_parallel", "bf16", "fp16"):
        config = ds_config(make_plan(PLAIN))
        if section == "fp16":
            config["bf16"] = {"enabled": False}
        for key in sorted(KEYS[section] or ()):
            filled = config | {section: {**config.get(section, {}), key: values.get(key, 1)}}
            answer = deepspeed.ask(filled, 8, 8)
            assert answer["refused"] is None, (section, key, answer)
