"""The plans that Accelerate refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.accelerate.config import CONFIG_FILE, environment, key_findings, read_config
from planner.backends.accelerate.space import TABLE, violations
from planner.backends.accelerate.way import way
from planner.backends.deepspeed.write import ALLOCATOR
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused, DocumentInvalid
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_mla_model, make_model, make_moe_model, make_plan
from tests.rules_over_plans import over_plans
from tests.traced_models import make_traced_model

emit = emitter("accelerate")

GOOD = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4)

BROKEN: dict[str, Strategy] = {
    "A1": replace(GOOD, pp=2),
    "A2": replace(GOOD, ep=2),
    "A4": replace(GOOD, dp_replicate=2, dp_shard=1),
    "A5": replace(GOOD, dp_replicate=2, dp_shard=1),
    "A6": replace(GOOD, zero_stage=0, cp=2, cp_kind="ring"),
    "A8": replace(GOOD, cp=2, cp_kind="ring"),
    "A19": replace(GOOD, tp=2),
    "D.P7": replace(GOOD, optimizer_offload=True, cp=2, cp_kind="ring"),
    "P1": replace(GOOD, dp_shard=1),
    "P4": replace(GOOD, cp=2, cp_kind="all_to_all"),
    "P5": replace(GOOD, recompute="selective", recompute_modules=("mlp",)),
    "P6": replace(GOOD, overlap_grad_reduce=False),
    "A6 with ZeRO-1": replace(GOOD, zero_stage=1, cp=2, cp_kind="ring"),
    "P6 of DDP": replace(GOOD, zero_stage=0, overlap_grad_reduce=False),
    "M41": GOOD,
    "M42": replace(GOOD, recompute="full"),
    "D.M42": replace(GOOD, zero_stage=1, recompute="full"),
}
MODELS = {
    "A2": make_moe_model(),
    "A8": make_mla_model(),
    "M41": make_traced_model(attention="eager"),
    **dict.fromkeys(("M42", "D.M42"), make_traced_model(checkpoints=False)),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_is_found(rule: str) -> None:
    plan = make_plan(BROKEN[rule], MODELS.get(rule, make_model()))
    assert f"accelerate.{rule.split(maxsplit=1)[0]}" in {finding.rule for finding in violations(rule_input(plan))}


def test_rules_have_ids_of_their_own_and_sources() -> None:
    found = over_plans(TABLE)
    assert len({rule.id for rule in found}) == len(found)
    assert all(rule.source for rule in found)


def test_a_refusal_names_every_broken_rule() -> None:
    plan = make_plan(replace(GOOD, pp=2, ep=2), make_moe_model())
    with pytest.raises(BackEndRefused, match=r"(?s)accelerate\.A1.*accelerate\.A2"):
        emit(plan, "torchrun")


def test_the_ways() -> None:
    assert way(GOOD) == "FSDP"
    assert way(replace(GOOD, zero_stage=1)) == "DEEPSPEED"
    assert way(replace(GOOD, optimizer_offload=True)) == "DEEPSPEED"
    assert way(replace(GOOD, zero_stage=0)) == "MULTI_GPU"
    assert way(replace(GOOD, zero_stage=0, dp_shard=1)) == "NO"


def test_the_rules_of_deepspeed_hold_on_its_way_only() -> None:
    offloaded = replace(GOOD, optimizer_offload=True, overlap_param_gather=True)
    hybrid = replace(offloaded, dp_replicate=2, dp_shard=2)
    found = {finding.rule: finding.fields for finding in violations(rule_input(make_plan(hybrid)))}
    assert "accelerate.D.P9" in found
    assert violations(rule_input(make_plan(replace(hybrid, optimizer_offload=False)))) == []


def test_the_environment_is_the_config() -> None:
    workload = Workload(global_batch_size=GOOD.global_batch_size, sequence_length=4096)
    emission = emit(make_plan(GOOD, make_model(), workload=workload), "torchrun")
    config = read_config(emission.files[CONFIG_FILE])
    assert environment(config) | ALLOCATOR == emission.written.environment
    assert emission.written.environment["FSDP_RESHARD_AFTER_FORWARD"] == "true"
    assert emission.written.environment["PARALLELISM_CONFIG_DP_SHARD_SIZE"] == "4"


def test_unknown_keys_are_found_at_both_levels() -> None:
    found = {finding.rule for finding in key_findings({"bogus": 1, "fsdp_config": {"fsdp_versions": 2}})}
    assert found == {"accelerate.K1", "accelerate.K2"}
    with pytest.raises(DocumentInvalid, match="not YAML"):
        read_config("a: [")
