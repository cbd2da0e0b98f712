"""What Megatron-LM 2.5, 23.04 and Megatron-DeepSpeed of 2022 run, and what they refuse with which rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.backends.backend import Space
from planner.backends.megatron.space_2021 import SPACE_2021
from planner.backends.megatron.space_2023 import SPACE_2023
from planner.backends.megatron_deepspeed.space import SPACE as SPACE_2022
from planner.backends.rules.rule import RuleInput, rule_input
from planner.errors import NoFeasiblePlan
from planner.model.builtin import builtin_model
from planner.model.spec import ModelSpec, MtpSpec
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.question.sequences import Sequences
from planner.question.training import Training
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_gpt, make_model, make_moe_model, make_plan
from tests.round_trip import plans_of_the_space, question

GPT3 = builtin_model("gpt3-175b")
PLAIN = Strategy(
    tp=8, dp_shard=2, num_microbatches=8, zero_stage=0, overlap_grad_reduce=False, overlap_param_gather=False
)
PIPELINE = replace(PLAIN, pp=4)
INTERLEAVED = replace(PIPELINE, vpp=2, schedule="interleaved", microbatch_group_size=4)


def given(strategy: Strategy = PLAIN, model: ModelSpec = GPT3, **workload: Any) -> RuleInput:
    values = {"global_batch_size": strategy.global_batch_size, "sequence_length": 2048} | workload
    return RuleInput(strategy, model, Workload(**values))


def planned(
    strategy: Strategy, layers: tuple[int, ...] | None = None, recomputed: tuple[int, ...] | None = None
) -> Plan:
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=2048)
    return make_plan(strategy, GPT3, None, workload, layers, recomputed)


def attention_with(**changes: Any) -> ModelSpec:
    kind = GPT3.layer_kinds[0]
    kinds = (kind.model_copy(update={"attention": kind.attention.model_copy(update=changes)}),)
    return GPT3.model_copy(update={"layer_kinds": kinds})


MODELS: dict[str, ModelSpec] = {
    "M1": attention_with(num_kv_heads=8),
    "M4": GPT3.model_copy(update={"mtp": MtpSpec(num_layers=1, kind=0)}),
    "M5": make_gpt(1024, 16, 2048),
    "M6": GPT3.model_copy(update={"tie_embeddings": False}),
}
NO_FLAG: dict[str, list[RuleInput]] = {
    "N1": [given(replace(PLAIN, sp=True))],
    "N2": [given(replace(PLAIN, cp=2, cp_kind="ring"))],
    "N3": [given(replace(PLAIN, ep=2))],
    "N4": [given(replace(PLAIN, etp=2))],
    "N5": [given(replace(PLAIN, zero_stage=1))],
    "N6": [given(replace(PLAIN, optimizer_offload=True))],
    "N7": [given(replace(PLAIN, activation_offload=True))],
    "N8": [given(replace(PLAIN, overlap_param_gather=True))],
    "N9": [given(replace(PLAIN, overlap_tp=True))],
    "N10": [given(replace(PLAIN, overlap_ep=True))],
}
BOTH: dict[str, list[RuleInput]] = {
    "A1": [given(global_batch_size=15)],
    "A3": [given(sequence_length=4096)],
    "A5": [
        given(replace(PLAIN, recompute="selective", recompute_modules=("mlp",))),
        rule_input(planned(replace(PIPELINE, recompute="full"), recomputed=(24, 24, 24, 12))),
    ],
    "T2": [given(replace(PLAIN, tp=5))],
    "T3": [given(replace(PLAIN, tp=5))],
    "T4": [given(replace(PIPELINE, axis_order="tp-cp-ep-pp-dp"))],
    "T5": [replace(rule_input(planned(PIPELINE)), strategy=replace(PIPELINE, pp=2, dp_shard=4))],
    "W1": [given(precision="fp8")],
    "W2": [given(optimizer="muon")],
}
BROKEN_2021: dict[str, list[RuleInput]] = {
    "K1": [given(training=Training(kind="lora"))],
    "K2": [given(sequences=Sequences(kind="packed", mean=512))],
    **BOTH,
    **NO_FLAG,
    "W1": [given(precision="fp8"), given(gradient_dtype="bf16")],
    "A2": [given(replace(INTERLEAVED, pp=2, microbatch_group_size=2))],
    "A4": [
        given(replace(PLAIN, overlap_grad_reduce=True)),
        given(replace(PIPELINE, overlap_grad_reduce=True), precision="fp16", gradient_dtype="bf16"),
    ],
    "S1": [given(replace(PIPELINE, schedule="gpipe")), given(replace(PIPELINE, schedule="interleaved"))],
    "S2": [given(replace(INTERLEAVED, num_microbatches=6)), given(replace(INTERLEAVED, microbatch_group_size=8))],
    "T1": [given(replace(PIPELINE, pp=5)), rule_input(planned(PIPELINE, (23, 25, 24, 24)))],
    "M2": [given(model=GPT3.model_copy(update={"position": "rope"}))],
    "M3": [given(model=make_model())],
    **{rule: [given(model=model)] for rule, model in MODELS.items()},
}
BROKEN_2022: dict[str, list[RuleInput]] = {
    "K1": [given(training=Training(kind="lora"))],
    "K2": [given(sequences=Sequences(kind="packed", mean=512))],
    **BOTH,
    **{rule: cases for rule, cases in NO_FLAG.items() if rule not in ("N5", "N6")},
    "D1": [
        given(replace(PLAIN, zero_stage=2), precision="fp16"),
        given(PLAIN),
        given(replace(PLAIN, zero_stage=1, dp_replicate=2, dp_shard=1)),
    ],
    "D2": [
        given(replace(PLAIN, zero_stage=0, optimizer_offload=True), precision="fp16"),
        given(replace(PLAIN, zero_stage=1, optimizer_offload=True)),
    ],
    "D3": [given(replace(PLAIN, zero_stage=1, overlap_grad_reduce=True))],
    "S1": [given(INTERLEAVED), given(replace(PIPELINE, schedule="gpipe"))],
    "T1": [given(replace(PIPELINE, pp=128)), rule_input(planned(PIPELINE, (0, 32, 32, 32)))],
    "M2": [given(model=GPT3.model_copy(update={"position": "none"}))],
    "M3": [given(model=GPT3.model_copy(update={"activation_function": "relu2"}))],
    **{rule: [given(model=model)] for rule, model in MODELS.items()},
}
BROKEN_2023: dict[str, list[RuleInput]] = {
    **{rule: cases for rule, cases in BROKEN_2021.items() if rule not in ("N1", "N5", "M2", "M6")},
    "A5": [given(replace(PLAIN, recompute="selective", recompute_modules=("mlp",)))],
    "A6": [
        given(replace(PLAIN, zero_stage=2), precision="fp16"),
        given(replace(PLAIN, zero_stage=1, dp_replicate=2, dp_shard=1)),
    ],
    "A7": [given(replace(PLAIN, zero_stage=1, overlap_grad_reduce=True), precision="fp16", gradient_dtype="bf16")],
    "M2": [given(model=GPT3.model_copy(update={"position": "alibi"}))],
    "M3": [given(model=GPT3.model_copy(update={"activation_function": "relu2"}))],
    "M5": [given(model=make_model())],
    "M6": [given(model=GPT3.model_copy(update={"head_bias": True}))],
}
SPACES = ((SPACE_2021, BROKEN_2021), (SPACE_2022, BROKEN_2022), (SPACE_2023, BROKEN_2023))


@pytest.mark.parametrize(("space", "broken"), SPACES)
def test_each_rule_fires_and_every_rule_has_a_case(space: Space, broken: dict[str, list[RuleInput]]) -> None:
    rules = {rule.id: rule for rule in (*space.rules.model_rules, *space.rules.strategy_rules)}
    assert set(rules) == set(broken)
    for rule, cases in broken.items():
        for case in cases:
            assert rules[rule].check(case), (rule, case.strategy)
        assert rules[rule].source


def test_what_the_paper_ran_breaks_nothing() -> None:
    """arXiv 2104.04473: GPT-3 with tp 8, pp 12 on 1536 devices, interleaved or not, all layers recomputed."""
    for strategy in (
        replace(PLAIN, pp=12, dp_shard=16, num_microbatches=96, recompute="full"),
        replace(INTERLEAVED, pp=12, microbatch_group_size=12, dp_shard=16, num_microbatches=96, recompute="full"),
        replace(PLAIN, overlap_grad_reduce=True),
    ):
        assert SPACE_2021.rules.violations(given(strategy, precision="fp16", gradient_dtype="bf16")) == []
    assert SPACE_2022.rules.violations(given(replace(PIPELINE, zero_stage=1))) == []
    offloaded = replace(PIPELINE, zero_stage=1, optimizer_offload=True)
    assert SPACE_2022.rules.violations(given(offloaded, precision="fp16", gradient_dtype="bf16")) == []
    bloom = given(replace(PIPELINE, zero_stage=1), builtin_model("bloom-176b"))
    assert SPACE_2022.rules.violations(bloom) == []
    assert {"megatron.M2"} <= {finding.rule for finding in SPACE_2021.rules.violations(bloom)}


def asked(model: str, backend: str, devices: int) -> Problem:
    problem = question(model, "dgx-a100-80g", devices, global_batch_size=1536)
    return problem.model_copy(update={"constraints": Constraints(backends=(backend,))})


def test_what_korthikanti_ran_is_planned_as_they_ran_it() -> None:
    """arXiv 2205.05198, section 6: 530B on 280 A100, tp 8, pp 35, 3 chunks a rank, sequence parallel, selective."""
    workload = Workload(global_batch_size=280, sequence_length=2048, precision="fp16")
    cluster = load_cluster("dgx-a100-80g", 280)
    constraints = Constraints(backends=("megatron==23.04",))
    problem = Problem(model=builtin_model("gpt-530b"), cluster=cluster, workload=workload, constraints=constraints)
    plan = find_plan(problem, SearchOptions(compare=False))
    published = Strategy(
        tp=8,
        sp=True,
        pp=35,
        vpp=3,
        num_microbatches=280,
        schedule="interleaved",
        microbatch_group_size=35,
        zero_stage=0,
        recompute="selective",
        recompute_modules=("attention_core",),
        overlap_grad_reduce=False,
        overlap_param_gather=False,
    )
    ran = estimate(problem, published)
    assert ran.status != "infeasible"
    assert plan.step_time_s <= ran.step_time_s, "nothing that was run is faster than what is proved"
    assert ran.step_time_s == pytest.approx(37.83, rel=0.05), "as measured"


def test_gpt_3_is_planned_as_in_2021() -> None:
    plan = find_plan(asked("gpt3-175b", "megatron==2.5", 256), SearchOptions(compare=False))
    s = plan.chosen()
    assert (plan.backend, plan.release, plan.status) == ("megatron", "2.5", "optimal")
    assert (s.sp, s.zero_stage, s.cp, s.optimizer_offload, s.overlap_param_gather) == (False, 0, 1, False, False)
    assert GPT3.num_layers % (s.pp * s.vpp) == 0
    assert s.vpp > 1, "interleaving makes the bubble smaller"
    assert s.pp > 2
    assert s.num_microbatches % s.pp == 0
    assert {chunk.num_layers for stage in plan.stages for chunk in stage.chunks} == {96 // (s.pp * s.vpp)}
    assert SPACE_2021.rules.violations(rule_input(plan)) == []


@pytest.mark.parametrize("backend", ["megatron==2.5", "megatron-deepspeed"])
def test_models_of_later_years_are_refused_with_the_reason(backend: str) -> None:
    with pytest.raises(NoFeasiblePlan, match=r"no flag for grouped key-value heads \(8 for 64"):
        find_plan(asked("llama-3.1-70b", backend, 64), SearchOptions(compare=False))


def test_experts_are_refused() -> None:
    moe = given(model=make_moe_model())
    for space, name in ((SPACE_2021, "megatron"), (SPACE_2022, "megatron-deepspeed")):
        assert f"{name}.M4" in {finding.rule for finding in space.rules.violations(moe)}


@pytest.mark.parametrize(("backend", "model"), [("megatron==2.5", "gpt3-175b"), ("megatron-deepspeed", "bloom-176b")])
def test_plans_of_the_space_keep_the_rules(backend: str, model: str) -> None:
    problem = question(model, "dgx-a100-80g", 192)
    found = [plan.chosen() for plan in plans_of_the_space(problem, backend, seed=1, wanted=10)]
    assert len(found) == 10
    assert all(not strategy.sp and strategy.zero_stage <= 1 for strategy in found)
