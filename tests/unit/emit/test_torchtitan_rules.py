from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.backends.rules.rule import RuleInput, rule_input
from planner.backends.torchtitan.space import STRATEGY_RULES, TABLE, violations
from planner.backends.torchtitan.toml_rules import TOML_RULES
from planner.backends.torchtitan.write import violations_for
from planner.model.builtin import builtin_model
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_model, make_moe_model, make_plan
from tests.rules_over_plans import over_plans
from tests.torchtitan_cases import deepseek_like, llama_like, qwen_like

FSDP = Strategy(dp_shard=8, num_microbatches=4, zero_stage=3)
PIPELINE = Strategy(pp=2, dp_shard=2, num_microbatches=4, overlap_grad_reduce=False)
EXPERTS = Strategy(dp_shard=8, ep=4, num_microbatches=2, zero_stage=3)


def found(strategy: Strategy, model: ModelSpec | None = None, **workload: Any) -> set[str]:
    values = {"global_batch_size": strategy.global_batch_size, "sequence_length": 1024} | workload
    given = RuleInput(strategy, model or llama_like(), Workload(**values))
    return {finding.rule.removeprefix("torchtitan.") for finding in violations(given)}


@pytest.mark.parametrize(
    "strategy",
    [
        FSDP,
        PIPELINE,
        replace(PIPELINE, schedule="gpipe", num_microbatches=1),
        replace(PIPELINE, schedule="interleaved", vpp=2, microbatch_group_size=2),
        replace(PIPELINE, schedule="looped_bfs", vpp=2),
    ],
)
def test_ordinary_strategies_break_no_rule(strategy: Strategy) -> None:
    assert found(strategy) == set()


@pytest.mark.parametrize(
    ("rule", "strategy", "model", "workload"),
    [
        ("G1", FSDP, None, {"global_batch_size": 33}),
        ("G2", replace(PIPELINE, axis_order="tp-cp-ep-pp-dp"), None, {}),
        ("T1", replace(FSDP, tp=8, sp=True), None, {}),
        ("T2", replace(FSDP, tp=4, sp=True), llama_like(width=514), {}),
        ("T2", replace(FSDP, tp=4, sp=True, etp=4), qwen_like(experts=8).model_copy(), {}),
        ("T3", replace(FSDP, sp=True), None, {}),
        ("T4", replace(FSDP, tp=2, overlap_tp=True), None, {}),
        ("C1", replace(FSDP, tp=4, sp=True), None, {"sequence_length": 1022}),
        ("C1", replace(FSDP, cp=4, cp_kind="ring"), None, {"sequence_length": 1020}),
        ("C4", replace(FSDP, cp=4, cp_kind="ring"), None, {"sequence_length": 1280}),
        ("C2", replace(FSDP, cp=2, cp_kind="all_to_all"), None, {}),
        ("C2", replace(FSDP, cp_kind="ring"), None, {}),
        ("C3", replace(EXPERTS, tp=2), deepseek_like(), {"sequence_length": 1023}),
        ("E1", replace(FSDP, ep=2), None, {}),
        ("E1", EXPERTS, qwen_like(experts=6), {}),
        ("E2", replace(EXPERTS, ep=8, dp_shard=4), qwen_like(experts=8), {}),
        ("E3", replace(EXPERTS, tp=2, sp=True, etp=2), qwen_like(experts=8), {}),
        ("E3", replace(FSDP, tp=2, sp=True), qwen_like(experts=8), {}),
        ("E4", replace(EXPERTS, dp_shard=12, ep=4), qwen_like(experts=8), {}),
        ("P1", replace(PIPELINE, schedule="zb_h1"), None, {}),
        ("P1", replace(FSDP, schedule="gpipe"), None, {}),
        ("P2", replace(PIPELINE, vpp=2), None, {}),
        ("P2", replace(PIPELINE, schedule="interleaved", microbatch_group_size=2), None, {}),
        ("P2", replace(PIPELINE, schedule="zbv"), None, {}),
        ("P2", replace(PIPELINE, schedule="looped_bfs"), None, {}),
        ("P2", replace(PIPELINE, schedule="interleaved_zb", microbatch_group_size=2), None, {}),
        ("P2", replace(FSDP, vpp=2), None, {}),
        ("P3", replace(PIPELINE, num_microbatches=1), None, {}),
        ("P3", replace(PIPELINE, schedule="dualpipev", vpp=2, num_microbatches=3), None, {}),
        (
            "P4",
            replace(PIPELINE, schedule="interleaved", vpp=2, num_microbatches=5, microbatch_group_size=2),
            None,
            {},
        ),
        ("P4", replace(PIPELINE, schedule="interleaved", vpp=2, microbatch_group_size=4), None, {}),
        (
            "P4",
            replace(PIPELINE, schedule="interleaved_zb", vpp=2, num_microbatches=5, microbatch_group_size=2),
            None,
            {},
        ),
        ("P4", replace(PIPELINE, schedule="interleaved_zb", vpp=2), None, {}),
        ("P4", replace(PIPELINE, schedule="looped_bfs", vpp=2, microbatch_group_size=2), None, {}),
        ("P5", PIPELINE, llama_like(tied=True), {}),
        ("P6", replace(PIPELINE, schedule="zbv", vpp=2), None, {}),
        ("P6", replace(PIPELINE, schedule="dualpipev", vpp=2), None, {}),
        ("P6", replace(PIPELINE, schedule="interleaved_zb", vpp=2, microbatch_group_size=2), None, {}),
        ("O1", replace(PIPELINE, overlap_grad_reduce=True), None, {}),
        ("O1", replace(FSDP, overlap_grad_reduce=False), None, {}),
        ("O1", replace(FSDP, overlap_param_gather=False), None, {}),
        ("O2", replace(EXPERTS, overlap_ep=True), qwen_like(experts=8), {}),
        ("Z1", replace(FSDP, zero_stage=1), None, {}),
        ("Z1", replace(PIPELINE, zero_stage=3), None, {}),
        ("Z2", replace(FSDP, zero_stage=0, cp=2, cp_kind="ring"), None, {}),
        ("Z2", replace(FSDP, zero_stage=0, dp_replicate=2), None, {}),
        ("R1", replace(FSDP, recompute="selective", recompute_modules=("mlp",)), None, {}),
        ("R1", replace(FSDP, recompute="selective", recompute_modules=("norm",)), None, {}),
        ("R1", replace(FSDP, recompute="full", recompute_modules=("mlp",)), None, {}),
        ("R3", replace(FSDP, optimizer_offload=True), None, {}),
        ("R3", replace(FSDP, activation_offload=True), None, {}),
        ("M7", FSDP, None, {"precision": "fp16"}),
        ("M7", FSDP, None, {"optimizer": "muon"}),
        ("M7", FSDP, None, {"dropout": True}),
        ("M8", FSDP, qwen_like(experts=8), {"precision": "fp8"}),
        ("M19", FSDP, qwen_like().model_copy(update={"family": "exaone4"}), {}),
    ],
)
def test_a_broken_rule_is_named(
    rule: str, strategy: Strategy, model: ModelSpec | None, workload: dict[str, Any]
) -> None:
    if rule == "T2" and strategy.etp == 4:
        assert model is not None
        kind = model.layer_kinds[0]
        assert kind.moe is not None
        narrow = kind.model_copy(update={"moe": kind.moe.model_copy(update={"expert_intermediate_size": 126})})
        model = model.model_copy(update={"layer_kinds": (narrow,)})
    assert rule in found(strategy, model, **workload)


def test_latent_attention_has_no_key_value_heads() -> None:
    assert "T1" not in found(replace(EXPERTS, tp=8, sp=True), deepseek_like())


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("M1", {"position": "alibi"}),
        ("M1", {"head_bias": True}),
        ("M1", {"embedding_norm": True}),
        ("M1", {"final_norm": False}),
        ("M4", {"activation_function": "gelu"}),
        ("M3", {"hidden_size": 512}),
    ],
)
def test_a_model_outside_the_families_is_refused(rule: str, change: dict[str, Any]) -> None:
    assert rule in found(FSDP, llama_like().model_copy(update=change))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("llama-3.1-8b", None),
        ("llama-3.1-405b", None),
        ("qwen3-235b-a22b", None),
        ("mixtral-8x7b", "M3"),
        ("gpt3-175b", "M1"),
        ("deepseek-v3", "M1"),
    ],
)
def test_builtin_models_are_built_or_refused(name: str, rule: str | None) -> None:
    broken = {each for each in found(FSDP, builtin_model(name)) if each.startswith("M")}
    assert (rule in broken) if rule else broken == set()


def test_experts_without_normed_heads_and_mixed_layers_are_refused() -> None:
    assert "M3" in found(FSDP, make_moe_model())
    assert "M5" in found(FSDP, make_moe_model(num_dense=2))
    assert "M1" in found(FSDP, make_moe_model(num_mtp_layers=1))


def test_recompute_is_every_layer_or_none() -> None:
    plan = make_plan(replace(PIPELINE, recompute="full"), recompute_layers_per_chunk=[4, 3])
    assert {rule.id for rule in over_plans(TABLE) if rule.check(plan)} == {"torchtitan.R2"}


def test_empty_chunks_are_refused_between_the_ends() -> None:
    strategy = replace(PIPELINE, pp=4, dp_shard=1)
    empty = make_plan(strategy, layers_per_chunk=[4, 0, 2, 2])
    assert {rule.id for rule in over_plans(TABLE) if rule.check(empty)} == {"torchtitan.L2"}
    bare_ends = make_plan(strategy, layers_per_chunk=[0, 4, 4, 0])
    assert {rule.id for rule in over_plans(TABLE) if rule.check(bare_ends)} == set()


@pytest.mark.parametrize(
    ("rule", "strategy", "model"),
    [
        ("V1", replace(FSDP, tp=8, sp=True), make_model()),
        ("V2", FSDP, make_model(tie_embeddings=True)),
        ("V3", PIPELINE, qwen_like()),
        ("V4", replace(FSDP, tp=2, sp=True, zero_stage=0), make_model()),
        ("V7", replace(FSDP, tp=2), make_model()),
        ("V5", Strategy(tp=4, sp=True, ep=4, num_microbatches=2, zero_stage=3), deepseek_like()),
    ],
)
def test_the_toml_release_refuses_more(rule: str, strategy: Strategy, model: ModelSpec) -> None:
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=1032)
    plan = make_plan(strategy, model, workload=workload)
    assert f"torchtitan.{rule}" not in {finding.rule for finding in violations_for(plan, "0.3.0")}
    assert f"torchtitan.{rule}" in {finding.rule for finding in violations_for(plan, "0.2.2")}


def test_files_of_the_toml_release_say_no_float8() -> None:
    work = Workload(global_batch_size=FSDP.global_batch_size, sequence_length=1024, precision="fp8")
    plan = make_plan(FSDP, workload=work)
    assert "torchtitan.M44" not in {finding.rule for finding in violations_for(plan, "0.3.0")}
    assert "torchtitan.M44" in {finding.rule for finding in violations_for(plan, "0.2.2")}


def test_rules_have_distinct_ids_and_sources() -> None:
    every = [(rule.id, rule.source) for rule in over_plans(TABLE)] + [(rule.id, rule.source) for rule in TOML_RULES]
    assert len({name for name, _ in every}) == len(every)
    assert all(source for _, source in every)
    assert len(STRATEGY_RULES) >= 20


def test_a_whole_plan_is_judged_like_its_strategy() -> None:
    plan = make_plan(replace(FSDP, zero_stage=1))
    assert [rule.id for rule in over_plans(TABLE) if rule.check(plan)] == [
        finding.rule for finding in violations(rule_input(plan))
    ]
