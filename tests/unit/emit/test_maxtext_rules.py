"""Each rule: the base case obeys it, one small change breaks it; every rule is broken by some case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.backends.maxtext.space import TABLE, violations
from planner.backends.rules.rule import RuleInput, rule_input
from planner.model.spec import ModelSpec, MtpSpec
from planner.question.problem import Workload
from planner.question.sequences import Sequences
from planner.question.training import Training
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_gpt, make_mla_model, make_model, make_moe_model, make_plan
from tests.rules_over_plans import over_plans

BASE = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4, recompute="full")
TENSOR = replace(BASE, tp=2, sp=True, dp_shard=2)
PIPELINE = replace(BASE, pp=2, dp_shard=2, schedule="gpipe")
CIRCULAR = replace(PIPELINE, vpp=2, schedule="looped_bfs")
RING = replace(BASE, cp=2, cp_kind="ring", dp_shard=2)
ULYSSES = replace(RING, cp_kind="all_to_all")
EXPERTS = replace(BASE, ep=4)


def given(
    strategy: Strategy = BASE,
    model: ModelSpec | None = None,
    architecture: str = "hopper",
    scale_up: int = 8,
    **workload: Any,
) -> RuleInput:
    values = {"global_batch_size": strategy.global_batch_size, "sequence_length": 4096} | workload
    return RuleInput(strategy, model or make_model(), Workload(**values), architecture, scale_up_devices=scale_up)


def layer_changed(model: ModelSpec, **changes: Any) -> ModelSpec:
    return model.model_copy(update={"layer_kinds": (model.layer_kinds[0].model_copy(update=changes),)})


def attention_changed(model: ModelSpec, **changes: Any) -> ModelSpec:
    return layer_changed(model, attention=model.layer_kinds[0].attention.model_copy(update=changes))


def experts_changed(**changes: Any) -> ModelSpec:
    model = make_moe_model()
    moe = model.layer_kinds[0].moe
    assert moe is not None
    return layer_changed(model, moe=moe.model_copy(update=changes))


def whole(layers: tuple[int, ...], relieved: tuple[int, ...]) -> RuleInput:
    plan = make_plan(PIPELINE, layers_per_chunk=layers, recompute_layers_per_chunk=relieved)
    return rule_input(plan)


MTP = make_model().model_copy(update={"mtp": MtpSpec(num_layers=1, kind=0)})
BROKEN: dict[str, list[RuleInput]] = {
    "K1": [given(training=Training(kind="lora")), given(training=Training(task="dpo"))],
    "M1": [given(model=make_model().model_copy(update={"family": "bloom"}))],
    "M2": [given(model=MTP), given(model=make_model().model_copy(update={"embedding_norm": True}))],
    "M3": [
        given(model=attention_changed(make_model(), qkv_bias=True)),
        given(model=attention_changed(make_model(), sliding_window=1024)),
        given(model=attention_changed(make_model(), sinks=True)),
    ],
    "M4": [given(model=layer_changed(make_model(), num_norms=4)), given(model=make_moe_model(num_dense=2))],
    "M5": [given(model=make_moe_model(shared=512)), given(model=experts_changed(gated=False))],
    "M6": [given(model=make_model().model_copy(update={"activation_function": "relu"}))],
    "M7": [given(model=make_model().model_copy(update={"position": "alibi"}))],
    "G1": [given(global_batch_size=17)],
    "G2": [given(replace(PIPELINE, axis_order="tp-cp-ep-pp-dp"))],
    "S1": [given(replace(BASE, dp_shard=12)), given(replace(TENSOR, tp=4, dp_shard=3), scale_up=6)],
    "T1": [given(replace(TENSOR, tp=16), make_model(num_kv_heads=8), scale_up=32)],
    "T2": [given(TENSOR, make_model().model_copy(update={"vocab_size": 32001}))],
    "T3": [given(replace(TENSOR, sp=False)), given(replace(BASE, sp=True))],
    "C1": [given(ULYSSES), given(replace(BASE, cp_kind="ring"))],
    "C2": [given(RING, sequence_length=4094), given(ULYSSES, architecture="tpu_v5p", sequence_length=4095)],
    "C3": [
        given(RING, make_mla_model()),
        given(replace(RING, cp=3), architecture="tpu_v5p", sequence_length=4608),
        given(ULYSSES, make_mla_model(), "tpu_v5p"),
        given(RING, architecture="tpu_v5p", dropout=True),
        given(replace(ULYSSES, cp=16), architecture="tpu_v5p", scale_up=64),
    ],
    "C4": [given(ULYSSES, architecture="tpu_v5p", scale_up=1)],
    "E1": [given(EXPERTS), given(replace(EXPERTS, ep=32, dp_shard=32), make_moe_model())],
    "E2": [given(replace(EXPERTS, dp_shard=6), make_moe_model(), scale_up=6)],
    "E3": [given(TENSOR, make_moe_model()), given(replace(TENSOR, etp=2))],
    "Z1": [given(replace(BASE, zero_stage=2)), given(replace(RING, zero_stage=1))],
    "Z2": [given(replace(BASE, zero_stage=1, dp_replicate=2)), given(replace(BASE, dp_replicate=4, dp_shard=1))],
    "Z4": [given(replace(BASE, zero_stage=1))],
    "Z3": [given(replace(BASE, dp_shard=3), scale_up=3)],
    "W1": [given(precision="fp16"), given(precision="fp8", architecture="cdna3")],
    "K6": [given(precision="fp8", fp8_recipe="delayed")],
    "W2": [given(optimizer="sgd"), given(optimizer="muon"), given(optimizer="adam_bf16_states")],
    "W3": [given(precision="fp8", architecture="tpu_v5p")],
    "W4": [given(architecture="ascend910b")],
    "P1": [
        given(replace(PIPELINE, schedule="1f1b")),
        given(replace(BASE, schedule="gpipe")),
        given(replace(CIRCULAR, schedule="interleaved", microbatch_group_size=2)),
        given(replace(PIPELINE, schedule="looped_bfs")),
    ],
    "P2": [given(replace(PIPELINE, num_microbatches=3))],
    "P3": [
        given(PIPELINE, make_model(7)),
        given(CIRCULAR, make_model(6)),
        given(PIPELINE, make_mla_model(8, num_dense=2)),
    ],
    "P5": [given(CIRCULAR, make_moe_model())],
    "P4": [whole((3, 5), (3, 5))],
    "R1": [
        given(replace(BASE, recompute="none")),
        given(replace(BASE, recompute="selective", recompute_modules=("mlp",))),
    ],
    "R2": [whole((4, 4), (4, 2))],
    "R3": [given(replace(PIPELINE, activation_offload=True))],
    "O1": [given(replace(BASE, overlap_grad_reduce=False))],
    "O2": [given(replace(TENSOR, overlap_tp=True))],
}
LEGAL = [
    given(),
    given(TENSOR),
    given(PIPELINE),
    given(CIRCULAR),
    given(RING),
    given(RING, architecture="tpu_v5p"),
    given(ULYSSES, architecture="tpu_v5p"),
    given(EXPERTS, make_moe_model()),
    given(replace(TENSOR, etp=2), make_moe_model()),
    given(RING, make_mla_model(), "tpu_v5p"),
    given(replace(BASE, zero_stage=1, num_microbatches=1)),
    given(replace(BASE, zero_stage=1), gradient_dtype="bf16"),
    given(replace(PIPELINE, zero_stage=1)),
    given(replace(BASE, zero_stage=0)),
    given(replace(BASE, dp_shard=64), architecture="tpu_v5p", scale_up=8960),
    given(precision="fp8"),
    whole((4, 4), (4, 4)),
]


@pytest.mark.parametrize("legal", LEGAL)
def test_what_maxtext_runs_breaks_no_rule(legal: RuleInput) -> None:
    assert violations(legal) == []


@pytest.mark.parametrize(("rule", "broken"), [(rule, each) for rule, cases in BROKEN.items() for each in cases])
def test_a_broken_rule_is_named(rule: str, broken: RuleInput) -> None:
    assert f"maxtext.{rule}" in {finding.rule for finding in violations(broken)}


def test_every_rule_has_a_case_a_source_and_an_id_of_its_own() -> None:
    ids = [rule.id for rule in over_plans(TABLE)]
    assert len(ids) == len(set(ids))
    # K1 and K2, which every back-end has, are tested for all of them at once; of K3 there is a case below.
    assert {rule.removeprefix("maxtext.") for rule in ids} == {*BROKEN, "K2", "K3"}
    assert all(rule.source for rule in over_plans(TABLE))


def test_rules_about_the_model_can_be_left_out() -> None:
    unknown = given(model=make_model().model_copy(update={"family": "bloom"}))
    assert violations(unknown, model_too=False) == []


def test_a_gpt_is_built_by_the_gpt3_block_only_with_its_biases() -> None:
    plain = make_gpt(1024, 16, 2048)
    assert {"maxtext.M3", "maxtext.M4"} <= {finding.rule for finding in violations(given(model=plain))}


def test_a_ring_of_latent_attention_on_tpu_takes_no_packed_documents() -> None:
    packed = Sequences(kind="packed", mean=512, packing="greedy")
    ring = given(Strategy(cp=2, cp_kind="ring"), model=make_mla_model())
    workload = ring.workload.model_copy(update={"sequences": packed})
    for architecture, broken in (("tpu_v5p", True), ("hopper", False)):
        found = {each.rule for each in violations(replace(ring, workload=workload, architecture=architecture))}
        assert ("maxtext.K3" in found) == broken
    assert "maxtext.K3" not in {each.rule for each in violations(replace(ring, architecture="tpu_v5p"))}
