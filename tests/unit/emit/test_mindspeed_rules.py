from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.backends.asked import inside
from planner.backends.mindspeed.model_rules import MODEL_RULES
from planner.backends.mindspeed.space import PROBLEM_RULES, STRATEGY_RULES, TABLE
from planner.backends.registry import software
from planner.backends.rules.rule import RuleInput, rule_input
from planner.errors import BackEndRefused
from planner.model.spec import LayerSpec, ModelSpec
from planner.question.problem import Constraints, Workload
from planner.question.sequences import Sequences
from planner.question.training import Training
from planner.search.backend_rules import BackEndRules
from planner.strategy.strategy import Strategy
from profiles.catalogue.device_files import load_device
from tests.emitter import emitter
from tests.hybrid_models import hybrid
from tests.mindspeed_plans import DUALPIPEV, INTERLEAVED, ascend_cluster, on_ascend
from tests.plan_factory import make_mla_model, make_model, make_moe_model, make_plan
from tests.round_trip import plans_of_the_space, question

emit = emitter("mindspeed")

DENSE, MOE = make_model(), make_moe_model(shared=512)


def given(
    strategy: Strategy | None = None,
    model: ModelSpec = DENSE,
    layers: tuple[int, ...] | None = None,
    architecture: str = "ascend910b",
    memory_gib: int = 64,
    **workload: object,
) -> RuleInput:
    strategy = strategy or Strategy()
    asked = {"global_batch_size": strategy.global_batch_size, "sequence_length": 4096, **workload}
    memory_bytes = memory_gib * 2**30
    return RuleInput(
        strategy, model, Workload.model_validate(asked), architecture, layers, device_memory_bytes=memory_bytes
    )


def planned(strategy: Strategy, **parts: Any) -> RuleInput:
    """A whole plan."""
    return rule_input(on_ascend(make_plan(strategy, **parts)))


PIPELINE = Strategy(pp=2, num_microbatches=4)


OVERLAPPED = Strategy(ep=2, dp_shard=2, overlap_ep=True, overlap_grad_reduce=False, overlap_param_gather=False)
BROKEN: dict[str, list[RuleInput]] = {
    "K1": [given(training=Training(kind="lora")), given(training=Training(task="dpo"))],
    "K2": [given(sequences=Sequences(kind="packed", mean=512))],
    "V1": [given(architecture="hopper"), given(architecture="ascend910a"), given(architecture="")],
    "V2": [given(memory_gib=32)],
    "W1": [given(precision="fp8")],
    "W2": [given(optimizer="adam_bf16_states")],
    "K5": [given(optimizer="adafactor"), given(optimizer="lion")],
    "W3": [
        given(optimizer="muon", precision="fp16"),
        given(Strategy(zero_stage=2), optimizer="muon"),
        given(Strategy(dp_replicate=2), optimizer="muon"),
    ],
    "W4": [given(model=MOE, precision="fp16")],
    "A3": [given(Strategy(dp_shard=2), global_batch_size=3)],
    "A8": [given(Strategy(vpp=2, schedule="interleaved"))],
    "A9": [given(Strategy(overlap_grad_reduce=False))],
    "A14": [given(Strategy(cp=2, cp_kind="ring"), sequence_length=4094)],
    "A15": [given(model=DENSE.model_copy(update={"learned_positions": 2048}))],
    "A21": [given(Strategy(ep=3, dp_shard=3), MOE), given(Strategy(ep=2, dp_shard=2))],
    "A26": [given(Strategy(cp=2, cp_kind="ring"), make_mla_model(num_mtp_layers=1))],
    "B1": [given(Strategy(sp=True))],
    "B2": [given(Strategy(tp=3))],
    "B2b": [given(Strategy(tp=8, sp=True), make_model(num_kv_heads=4))],
    "B8": [given(Strategy(pp=2), layers=(4, 5))],
    "C1": [given(Strategy(tp=2, sp=True, ep=8, etp=2), MOE)],
    "C2": [given(Strategy(cp=2, cp_kind="ring", pp=2, axis_order="tp-cp-ep-pp-dp"))],
    "C4": [given(Strategy(ep=8, dp_replicate=2, dp_shard=4), MOE)],
    "D2": [given(replace(INTERLEAVED, num_microbatches=3))],
    "D3": [given(Strategy(tp=2), MOE)],
    "D5": [given(Strategy(tp=5))],
    "U3": [given(global_batch_size=3)],
    "U1": [given(Strategy(tp=4, sp=True), sequence_length=4098)],
    "U2": [given(Strategy(cp=16, cp_kind="all_to_all"))],
    "S1": [
        given(replace(DUALPIPEV, overlap_grad_reduce=True)),
        given(replace(DUALPIPEV, num_microbatches=3)),
        given(replace(DUALPIPEV, cp=2, cp_kind="ring")),
        given(replace(DUALPIPEV, zero_stage=3)),
        given(DUALPIPEV, make_model(10)),
        given(DUALPIPEV, make_model(tie_embeddings=True)),
        given(DUALPIPEV, layers=(1, 3, 2, 2)),
        given(replace(DUALPIPEV, pp=1)),
    ],
    "S2": [given(Strategy(pp=2, schedule="zb_h1", num_microbatches=4)), given(Strategy(pp=2, schedule="interleaved"))],
    "E1": [
        given(replace(OVERLAPPED, overlap_grad_reduce=True), MOE),
        given(replace(OVERLAPPED, tp=2, sp=True, etp=2), MOE),
        given(replace(OVERLAPPED, ep=1), MOE),
        given(replace(OVERLAPPED, dispatcher="allgather"), MOE),
        given(replace(OVERLAPPED, pp=2, num_microbatches=4), MOE),
        given(replace(OVERLAPPED, activation_offload=True), MOE),
        given(replace(OVERLAPPED, pp=2, vpp=2, schedule="interleaved", num_microbatches=2), MOE),
        given(replace(OVERLAPPED, pp=2, vpp=2, schedule="interleaved", num_microbatches=4), MOE, (4, 0, 2, 2)),
    ],
    "T1": [
        given(Strategy(tp=2, overlap_tp=True)),
        given(Strategy(tp=2, sp=True, overlap_tp=True), MOE),
        given(Strategy(tp=2, sp=True, overlap_tp=True), architecture="ascend910c"),
    ],
    "F1": [given(Strategy(zero_stage=2, dp_replicate=2)), given(Strategy(zero_stage=3, overlap_param_gather=False))],
    "O1": [
        given(Strategy(optimizer_offload=True, zero_stage=0)),
        given(Strategy(optimizer_offload=True, zero_stage=3)),
        given(Strategy(optimizer_offload=True), optimizer="sgd"),
    ],
    "P2": [given(Strategy(recompute="selective", recompute_modules=("moe",))), given(Strategy(recompute="selective"))],
    "K4": [
        given(Strategy(recompute="full", activation_offload=True)),
        given(replace(DUALPIPEV, activation_offload=True)),
        given(Strategy(pp=2, activation_offload=True), layers=(3, 5)),
    ],
    "P4": [planned(replace(PIPELINE, recompute="full"), recompute_layers_per_chunk=(1, 3))],
    "P5": [
        planned(replace(PIPELINE, activation_offload=True), activation_offload_layers=[2, 4]),
        planned(Strategy(activation_offload=True), activation_offload_layers=[3]),
    ],
    "P6": [replace(planned(INTERLEAVED), strategy=DUALPIPEV)],
    "P7": [given(Strategy(cp=2))],
}


def attention_with(**changes: object) -> ModelSpec:
    return kind_with(DENSE, attention={**DENSE.layer_kinds[0].attention.model_dump(), **changes})


def kind_with(model: ModelSpec, **changes: object) -> ModelSpec:
    kinds = tuple(LayerSpec.model_validate({**kind.model_dump(), **changes}) for kind in model.layer_kinds)
    return model.model_copy(update={"layer_kinds": kinds})


def experts_with(**changes: object) -> ModelSpec:
    moe = MOE.layer_kinds[0].moe
    assert moe is not None
    return kind_with(MOE, moe={**moe.model_dump(), **changes})


UNBUILDABLE: dict[str, ModelSpec] = {
    "M3": kind_with(DENSE, norm_placement="post_branch"),
    "M13": attention_with(sinks=True),
    "M14": attention_with(sliding_window=1024),
    "M15": DENSE.model_copy(update={"family": "gpt_oss"}),
    "M16": experts_with(shared_gate=True),
    "M17": experts_with(expert_bias=True, router_bias=True),
    "M21": hybrid("qwen3_next"),
    "M18": make_moe_model(num_mtp_layers=1).model_copy(update={"learned_positions": 8192, "position": "learned"}),
}


def test_plain_strategies_break_nothing() -> None:
    for strategy, model in (
        (Strategy(), DENSE),
        (replace(INTERLEAVED, tp=2, sp=True, dp_shard=2), DENSE),
        (Strategy(tp=2, sp=True, ep=4, dp_shard=4), MOE),
        (DUALPIPEV, DENSE),
        (OVERLAPPED, MOE),
        (Strategy(dp_shard=4, zero_stage=3), DENSE),
        (Strategy(pp=2, num_microbatches=4, activation_offload=True, optimizer_offload=True), DENSE),
    ):
        assert TABLE.violations(given(strategy, model)) == []


@pytest.mark.parametrize("rule", BROKEN)
def test_each_strategy_rule_fires(rule: str) -> None:
    for broken in BROKEN[rule]:
        found = {finding.rule: finding for finding in TABLE.violations(broken)}
        assert f"mindspeed.{rule}" in found, (rule, broken.strategy)
        assert found[f"mindspeed.{rule}"].message


@pytest.mark.parametrize("rule", UNBUILDABLE)
def test_each_model_rule_fires(rule: str) -> None:
    model = UNBUILDABLE[rule]
    assert f"mindspeed.{rule}" in {finding.rule for finding in TABLE.violations(given(model=model))}
    assert f"mindspeed.{rule}" not in {f.rule for f in TABLE.violations(given(model=model), model_too=False)}


def test_every_rule_has_a_case_here() -> None:
    assert set(BROKEN) == {rule.id for rule in (*PROBLEM_RULES, *STRATEGY_RULES)}
    # M1 to M12, M19 and M20 are Megatron's own functions, broken one by one in test_megatron_rules.py.
    assert {rule.id for rule in MODEL_RULES} == {f"M{number}" for number in range(1, 22)}
    assert {*(f"M{number}" for number in range(13, 19)), "M21"} <= set(UNBUILDABLE)


def test_rule_ids_are_unique_and_sourced() -> None:
    rules = (*TABLE.model_rules, *TABLE.strategy_rules)
    assert len({rule.id for rule in rules}) == len(rules)
    assert set(rules) == {*PROBLEM_RULES, *STRATEGY_RULES, *MODEL_RULES}
    assert all(rule.source for rule in rules)


@pytest.mark.parametrize("architecture", ["ascend910b", "ascend910c", "ascend950"])
def test_ascend_devices_are_taken(architecture: str) -> None:
    plan = make_plan(cluster=ascend_cluster(1, architecture))
    assert emit(plan, "torchrun").written.version == "core_v0.12.1"


def test_an_atlas_a2_of_32_gib_is_refused() -> None:
    asked = question("llama-2-7b", "ascend-910b-8", 8)
    pool = asked.cluster.pools[0].model_copy(update={"device": load_device("ascend-910b4")})
    small = asked.model_copy(update={"cluster": asked.cluster.model_copy(update={"pools": (pool,)})})
    assert BackEndRules(inside(asked, software("mindspeed"))).always() == []
    (reason,) = BackEndRules(inside(small, software("mindspeed"))).always()
    assert "64 GB or more" in reason


def test_other_devices_are_refused_with_the_rule() -> None:
    with pytest.raises(BackEndRefused, match=r"mindspeed\.V1.*Huawei Ascend.*'hopper'"):
        emit(make_plan(), "torchrun")


def test_a_refused_plan_lists_every_rule_at_once() -> None:
    plan = on_ascend(make_plan(Strategy(tp=3, dp_shard=2, overlap_grad_reduce=False)))
    with pytest.raises(BackEndRefused) as caught:
        emit(plan, "torchrun")
    for rule in ("mindspeed.B2", "mindspeed.A9", "mindspeed.D5"):
        assert rule in caught.value.what
    assert caught.value.hint


def test_tensor_parallelism_without_its_overlap_is_in_the_space() -> None:
    """Rules tie the overlap to dense models and to Atlas A2 and 950; the others still get sequence parallelism."""
    for model, cluster in (("mixtral-8x7b", "ascend-910b-8"), ("llama-2-7b", "ascend-910c")):
        asked = question(model, cluster, 16)
        asked = asked.model_copy(update={"constraints": Constraints(pins={"tp": 4, "sp": True})})
        found = [plan.chosen() for plan in plans_of_the_space(asked, "mindspeed", seed=1, wanted=5)]
        assert len(found) == 5
        assert not any(strategy.overlap_tp for strategy in found)
