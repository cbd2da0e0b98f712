"""Each rule: the base case obeys it, one small change breaks it and only names what it should."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.backends.asked import inside, why_not_these_devices
from planner.backends.deepspeed.expressible_rules import EXPRESSIBLE_RULES
from planner.backends.deepspeed.space import SPACE, TABLE
from planner.backends.registry import software
from planner.backends.rules.rule import RuleInput, rule_input
from planner.model.builtin import builtin_model
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MtpSpec, VisionSpec
from planner.question.problem import Workload
from planner.question.sequences import Sequences
from planner.search.backend_rules import BackEndRules
from planner.strategy.strategy import Strategy
from tests.hybrid_models import hybrid
from tests.plan_factory import make_mla_model, make_model, make_moe_model, make_plan
from tests.round_trip import question
from tests.traced_models import make_traced_model

BASE = Strategy(dp_shard=4, num_microbatches=4, overlap_grad_reduce=False, overlap_param_gather=False)
PIPELINE = replace(BASE, pp=2, dp_shard=2)


def given(strategy: Strategy = BASE, model: ModelSpec | None = None, **workload: Any) -> RuleInput:
    values = {"global_batch_size": strategy.global_batch_size, "sequence_length": 4096} | workload
    return RuleInput(strategy, model or make_model(), Workload(**values))


def vision_model() -> ModelSpec:
    attention = AttentionSpec(num_heads=4, num_kv_heads=4, head_dim=16, v_head_dim=16)
    layer = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=64, gated=False))
    tower = VisionSpec(
        hidden_size=64, num_layers=2, layer=layer, patches_per_image=64, tokens_per_image=16, extra_parameters=0
    )
    return make_model().model_copy(update={"vision": tower})


def windowed_model(window: int) -> ModelSpec:
    model = make_model()
    attention = model.layer_kinds[0].attention.model_copy(update={"sliding_window": window})
    kinds = (model.layer_kinds[0].model_copy(update={"attention": attention}),)
    return model.model_copy(update={"layer_kinds": kinds, "family": "mistral"})


def stage_level(**changes: Any) -> RuleInput:
    """The base case with a layout whose stages differ from the strategy."""
    plan = make_plan(replace(PIPELINE, **changes))
    return replace(rule_input(plan), strategy=PIPELINE)


ULYSSES = replace(BASE, cp=2, cp_kind="all_to_all", dp_shard=2)
LORA = {"kind": "lora"}
BROKEN: dict[str, list[RuleInput]] = {
    "K1": [given(training={"kind": "qlora"}), given(training={"kind": "full", "task": "dpo"})],
    "K2": [given(sequences=Sequences(kind="packed", mean=512))],
    "K7": [given(model=builtin_model("t5-11b")), given(model=builtin_model("wan-2.1-14b"))],
    "L1": [given(model=make_model().model_copy(update={"family": "gpt2"}), training=LORA)],
    "L2": [given(model=make_model(tie_embeddings=True), training={**LORA, "ends": True})],
    "L4": [
        given(replace(BASE, tp=2, dp_shard=2), training=LORA),
        given(PIPELINE, training=LORA),
        given(replace(BASE, cp=2, cp_kind="all_to_all", dp_shard=2), training=LORA),
    ],
    "L7": [given(replace(BASE, zero_stage=3), training={**LORA, "dora": True})],
    "M40": [given(model=make_traced_model(), training=LORA)],
    "M41": [given(model=make_traced_model(attention="eager"))],
    "M42": [given(replace(BASE, recompute="full"), make_traced_model(checkpoints=False))],
    "C1": [given(global_batch_size=17)],
    "C2": [given(replace(BASE, zero_stage=4)), given(replace(BASE, zero_stage=-1))],
    "E1": [given(replace(PIPELINE, zero_stage=2)), given(replace(PIPELINE, zero_stage=3))],
    "E2": [given(replace(BASE, zero_stage=0))],
    "E3": [given(replace(PIPELINE, schedule="dualpipev", vpp=2, num_microbatches=3))],
    "E4": [given(replace(ULYSSES, cp=3))],
    "E5": [given(replace(ULYSSES, cp=4), make_model(num_heads=12, num_kv_heads=6))],
    "E6": [given(ULYSSES, sequence_length=4095)],
    "E7": [given(ULYSSES, make_mla_model())],
    "T1": [given(ULYSSES, windowed_model(1024))],
    "E8": [given(replace(BASE, tp=2), optimizer="muon"), given(model=make_moe_model(), optimizer="muon")],
    "E9": [given(replace(BASE, optimizer_offload=True), optimizer="sgd")],
    "E10": [given(optimizer="adam_bf16_states")],
    "K5": [given(optimizer="adafactor"), given(optimizer="adam_8bit")],
    "E11": [given(replace(BASE, ep=4)), given(replace(BASE, ep=3, dp_shard=3), make_moe_model())],
    "E12": [given(replace(BASE, ep=8), make_moe_model())],
    "M43": [given(replace(BASE, ep=4), make_moe_model().model_copy(update={"family": "glm4_moe"}))],
    "E14": [given(replace(BASE, tp=2), make_moe_model()), given(replace(BASE, tp=2), make_mla_model())],
    "E15": [given(replace(ULYSSES, ep=2), make_moe_model())],
    "E18": [given(ULYSSES, hybrid("qwen3_next")), given(ULYSSES, hybrid("lfm2"))],
    "T2": [given(replace(BASE, zero_stage=0, optimizer_offload=True))],
    "T3": [given(replace(BASE, tp=16)), given(replace(BASE, tp=3))],
    "T4": [given(replace(PIPELINE, zero_stage=0), gradient_dtype="bf16")],
    "E16": [given(model=make_model().model_copy(update={"learned_positions": 1024, "position": "learned"}))],
    "E17": [rule_input(make_plan(replace(BASE, pp=3, dp_shard=1), layers_per_chunk=(4, 0, 4)))],
    "M1": [given(model=make_model().model_copy(update={"family": "custom"})), given(model=make_moe_model(shared=512))],
    "M2": [given(model=make_model().model_copy(update={"mtp": MtpSpec(num_layers=1, kind=0)}))],
    "M3": [given(model=vision_model())],
    "M4": [given(precision="fp8")],
    "M5": [given(dropout=True)],
    "P1": [
        given(replace(PIPELINE, schedule="gpipe")),
        given(replace(PIPELINE, schedule="interleaved", vpp=2)),
        given(replace(PIPELINE, schedule="zb_h1")),
        given(replace(PIPELINE, schedule="zbv", vpp=2)),
        given(replace(BASE, schedule="dualpipev", vpp=2)),
    ],
    "P2": [given(replace(PIPELINE, microbatch_group_size=2))],
    "P3": [given(replace(ULYSSES, tp=2))],
    "P4": [given(replace(PIPELINE, tp=2)), given(replace(PIPELINE, ep=2), make_moe_model())],
    "P5": [given(PIPELINE, make_model().model_copy(update={"family": "gpt2"}))],
    "P6": [given(replace(BASE, tp=2, sp=True))],
    "P7": [given(replace(ULYSSES, cp_kind="ring")), given(replace(BASE, cp_kind="ring"))],
    "P8": [given(replace(BASE, etp=2, ep=2), make_moe_model())],
    "P9": [given(replace(BASE, dp_replicate=2, dp_shard=2))],
    "P10": [
        given(replace(BASE, recompute="selective", recompute_modules=("mlp",))),
        stage_level(recompute="selective"),
    ],
    "P11": [given(replace(BASE, activation_offload=True)), stage_level(activation_offload=True)],
    "P12": [stage_level(optimizer_offload=True)],
    "P13": [
        given(replace(BASE, overlap_grad_reduce=True)),
        given(replace(PIPELINE, overlap_grad_reduce=True), gradient_dtype="bf16"),
        given(replace(BASE, zero_stage=0, overlap_grad_reduce=True), gradient_dtype="bf16"),
    ],
    "P14": [
        given(replace(BASE, zero_stage=2, overlap_grad_reduce=True, overlap_param_gather=True)),
        given(replace(BASE, zero_stage=3, overlap_param_gather=True)),
    ],
    "P15": [given(replace(BASE, ep=2, overlap_ep=True), make_moe_model())],
    "P16": [given(replace(BASE, overlap_tp=True))],
    "P17": [given(replace(BASE, axis_order="tp-cp-ep-pp-dp"))],
    "P18": [stage_level(recompute="full")],
    "P19": [replace(stage_level(), strategy=replace(PIPELINE, pp=4, dp_shard=1))],
    "V1": [replace(given(), architecture="battlemage")],
}

PASSING = [
    given(),
    given(replace(BASE, zero_stage=3, overlap_grad_reduce=True, overlap_param_gather=True)),
    given(replace(BASE, zero_stage=2, overlap_grad_reduce=True)),
    given(replace(BASE, overlap_grad_reduce=True), gradient_dtype="bf16"),
    given(replace(BASE, overlap_grad_reduce=True, optimizer_offload=True)),
    given(replace(BASE, overlap_grad_reduce=True), precision="fp16"),
    given(replace(BASE, zero_stage=0), gradient_dtype="bf16"),
    given(replace(BASE, zero_stage=0, dp_replicate=4, dp_shard=1), gradient_dtype="bf16"),
    given(replace(PIPELINE, zero_stage=0), precision="fp16", gradient_dtype="bf16"),
    given(replace(BASE, tp=4, overlap_tp=True)),
    given(ULYSSES),
    given(replace(ULYSSES, cp=16)),
    given(ULYSSES, windowed_model(4096)),
    given(replace(BASE, ep=4), make_moe_model()),
    given(replace(BASE, recompute="full")),
    given(PIPELINE),
    given(replace(PIPELINE, schedule="dualpipev", vpp=2)),
    given(optimizer="muon"),
    rule_input(make_plan(PIPELINE)),
    rule_input(make_plan(replace(PIPELINE, recompute="full", optimizer_offload=True))),
]


@pytest.mark.parametrize("case", PASSING)
def test_a_legal_strategy_breaks_no_rule(case: RuleInput) -> None:
    assert TABLE.violations(case) == []


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, cases in BROKEN.items() for case in cases])
def test_a_rule_names_what_breaks_it(name: str, case: RuleInput) -> None:
    found = {finding.rule: finding for finding in TABLE.violations(case)}
    assert f"deepspeed.{name}" in found, sorted(found)
    assert found[f"deepspeed.{name}"].source
    assert len(found[f"deepspeed.{name}"].message) > 15


def test_every_rule_has_a_breaking_case_and_a_source() -> None:
    rules = (*TABLE.model_rules, *TABLE.strategy_rules)
    assert {rule.id for rule in rules} == set(BROKEN)
    assert all(rule.source for rule in rules)
    assert len({rule.id for rule in rules}) == len(rules)


def test_model_rules_can_be_left_out_of_the_search() -> None:
    case = given(replace(BASE, sp=True, tp=2), precision="fp8")
    assert {finding.rule for finding in TABLE.violations(case, model_too=False)} == {"deepspeed.P6"}


@pytest.mark.parametrize("pair", SPACE.columns.apart)
def test_axes_apart_are_refused_together(pair: tuple[str, str]) -> None:
    """The search does not try what rules refuse whatever else the strategy says."""
    both = Strategy.from_dict({**BASE.to_dict(), "cp_kind": "all_to_all", **dict.fromkeys(pair, 2)})
    assert TABLE.violations(given(both, make_moe_model() if "ep" in pair else None), model_too=False) != []


@pytest.mark.parametrize("cluster", ["dgx-h100", "mi300x-8", "ascend-910b-8"])
def test_devices_of_its_readme_are_taken(cluster: str) -> None:
    asked = question("llama-2-7b", cluster, 8)
    assert why_not_these_devices(software("deepspeed"), asked) is None
    assert BackEndRules(inside(asked, software("deepspeed"))).always() == []


@pytest.mark.parametrize("cluster", ["tpu-v5p", "trn2"])
def test_other_devices_are_not(cluster: str) -> None:
    assert why_not_these_devices(software("deepspeed"), question("llama-2-7b", cluster, 64)) is not None


def test_rules_about_stages_are_silent_before_stages_exist() -> None:
    assert TABLE.violations(given(PIPELINE)) == []
    assert {rule.id for rule in EXPRESSIBLE_RULES if rule.check(stage_level(recompute="selective"))} == {"P10"}
