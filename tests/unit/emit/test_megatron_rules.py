from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.backends.megatron.environment import environment, max_connections
from planner.backends.megatron.model_rules import MODEL_RULES
from planner.backends.megatron.space import KINDS, PACKED, PROBLEM_RULES, STRATEGY_RULES, TABLE
from planner.backends.registry import backend
from planner.backends.rules.rule import RuleInput, rule_input
from planner.errors import BackEndRefused
from planner.model.spec import LayerRun, LayerSpec, MlpSpec, ModelSpec, VisionSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.question.sequences import Sequences
from planner.question.training import Training
from planner.strategy.fields import PINNABLE
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.hybrid_models import hybrid
from tests.plan_factory import make_model, make_moe_model, make_plan

emit = emitter("megatron")

DENSE, MOE = make_model(), make_moe_model(shared=512)
INTERLEAVED = Strategy(pp=4, vpp=2, schedule="interleaved", microbatch_group_size=4, num_microbatches=8)


def given(
    strategy: Strategy | None = None,
    model: ModelSpec = DENSE,
    layers: tuple[int, ...] | None = None,
    **workload: object,
) -> RuleInput:
    strategy = strategy or Strategy()
    asked = {"global_batch_size": strategy.global_batch_size, "sequence_length": 4096, **workload}
    return RuleInput(strategy, model, Workload.model_validate(asked), "hopper", layers)


PIPELINE = Strategy(pp=2, num_microbatches=4)


def swapped(plan: Plan) -> Plan:
    """The plan with the chunks of its two stages on each other's ranks."""
    first, last = plan.stages
    chunks = (last.chunks, first.chunks)
    stages = tuple(stage.model_copy(update={"chunks": own}) for stage, own in zip((first, last), chunks, strict=True))
    return plan.model_copy(update={"stages": stages})


BROKEN: dict[str, RuleInput] = {
    "K1": given(training=Training(kind="lora")),
    "K2": given(sequences=Sequences(kind="packed", mean=512, packing="greedy")),
    "A3": given(Strategy(dp_shard=2), global_batch_size=3),
    "A8": given(Strategy(vpp=2, schedule="interleaved")),
    "A9": given(Strategy(overlap_grad_reduce=False)),
    "A13": given(Strategy(zero_stage=2), optimizer="muon"),
    "K5": given(optimizer="adam_8bit"),
    "K6": given(precision="fp8", fp8_recipe="mxfp8"),
    "D6": given(optimizer="lion", precision="fp16"),
    "A27": given(Strategy(zero_stage=0, fp8_parameters=True), precision="fp8"),
    "A14": given(Strategy(cp=2, cp_kind="ring"), sequence_length=4094),
    "K3": given(Strategy(cp=2, cp_kind="ring"), sequences=Sequences(kind="packed", mean=512, packing="concatenated")),
    "A15": given(model=DENSE.model_copy(update={"learned_positions": 2048})),
    "A18": given(Strategy(tp=2, overlap_tp=True)),
    "A21": given(Strategy(ep=3, dp_shard=3), MOE),
    "B1": given(Strategy(sp=True)),
    "B2": given(Strategy(tp=3)),
    "B2b": given(Strategy(tp=6), make_model(num_heads=12, num_kv_heads=4)),
    "B8": given(Strategy(pp=2), layers=(4, 5)),
    "B11": given(
        Strategy(tp=2, sp=True, ep=2, etp=2, dp_shard=2),
        MOE.model_copy(
            update={
                "layer_kinds": tuple(
                    kind.model_copy(update={"moe": kind.moe.model_copy(update={"expert_bias": True})})
                    for kind in MOE.layer_kinds
                    if kind.moe
                )
            }
        ),
    ),
    "B13": given(replace(INTERLEAVED, overlap_ep=True), MOE),
    "B14": given(Strategy(tp=8), hybrid("qwen3_next")),
    "B15": given(Strategy(cp=2, cp_kind="ring"), hybrid("deepseek_v32")),
    "B16": given(Strategy(pp=2), hybrid("nemotron_h"), layers=(8, 0)),
    "B17": given(Strategy(ep=2, dp_shard=2, dispatcher="deepep"), MOE, precision="fp16"),
    "C1": given(Strategy(tp=2, sp=True, ep=8, etp=2), MOE),
    "C2": given(Strategy(cp=2, cp_kind="ring", pp=2, axis_order="tp-cp-ep-pp-dp")),
    "C4": given(Strategy(ep=8, dp_replicate=2, dp_shard=4), MOE),
    "D2": given(replace(INTERLEAVED, num_microbatches=3)),
    "D3": given(Strategy(tp=2), MOE),
    "D5": given(Strategy(tp=5)),
    "O1": given(Strategy(zero_stage=0), optimizer="adam_bf16_states"),
    "U1": given(Strategy(tp=4, sp=True), sequence_length=4098),
    "U2": given(Strategy(cp=16, cp_kind="all_to_all")),
    "U3": given(global_batch_size=3),
    "U4": given(Strategy(dp_replicate=2), optimizer="muon"),
    "P1": given(Strategy(pp=2, schedule="zb_h1", num_microbatches=4)),
    "P2": given(Strategy(recompute="selective", recompute_modules=("norm",))),
    "P3": given(Strategy(recompute="full", activation_offload=True)),
    "P4": rule_input(make_plan(replace(PIPELINE, recompute="full"), recompute_layers_per_chunk=(1, 3))),
    "P5": rule_input(make_plan(replace(PIPELINE, activation_offload=True), activation_offload_layers=[2, 0])),
    "P6": rule_input(swapped(make_plan(PIPELINE))),
    "P7": given(Strategy(cp=2)),
}


def kind_with(model: ModelSpec, **changes: object) -> ModelSpec:
    """The model with one field of its layers changed."""
    kinds = tuple(LayerSpec.model_validate({**kind.model_dump(), **changes}) for kind in model.layer_kinds)
    return model.model_copy(update={"layer_kinds": kinds})


def attention_with(**changes: object) -> ModelSpec:
    return kind_with(DENSE, attention={**DENSE.layer_kinds[0].attention.model_dump(), **changes})


def two_kinds(change: Callable[[LayerSpec], LayerSpec]) -> ModelSpec:
    first = DENSE.layer_kinds[0]
    runs = (LayerRun(kind=0, count=4), LayerRun(kind=1, count=4))
    return DENSE.model_copy(update={"layer_kinds": (first, change(first)), "layer_runs": runs})


VISION = VisionSpec(
    hidden_size=64,
    num_layers=2,
    layer=DENSE.layer_kinds[0],
    patches_per_image=16,
    tokens_per_image=16,
    extra_parameters=10,
)
UNBUILDABLE: dict[str, list[ModelSpec]] = {
    "M1": [DENSE.model_copy(update={"vision": VISION})],
    "M2": [kind_with(DENSE, num_norms=4), kind_with(DENSE, norm="layer_no_bias")],
    "M3": [kind_with(DENSE, norm_placement="post_branch")],
    "M4": [kind_with(DENSE, parallel_residual=True)],
    "M5": [DENSE.model_copy(update={"position": "alibi"}), DENSE.model_copy(update={"rotary_base": 10000.5})],
    "M6": [DENSE.model_copy(update={"embedding_norm": True}), DENSE.model_copy(update={"head_bias": True})],
    "M7": [
        two_kinds(
            lambda kind: kind.model_copy(update={"attention": kind.attention.model_copy(update={"num_kv_heads": 4})})
        )
    ],
    "M8": [
        two_kinds(lambda kind: kind.model_copy(update={"mlp": MlpSpec(intermediate_size=8192, gated=True)})),
    ],
    "M9": [attention_with(qk_norm="full_width"), attention_with(causal=False), attention_with(logit_softcap=50.0)],
    "M10": [attention_with(output_bias=True)],
    "M11": [DENSE.model_copy(update={"activation_function": "gelu_pytorch_tanh"})],
    "M19": [DENSE.model_copy(update={"family": "smollm3"}), DENSE.model_copy(update={"family": "hyperclovax"})],
    "M20": [
        hybrid("kimi_linear"),
        hybrid("falcon_h1"),
        hybrid("jamba"),
        hybrid("minimax"),
        hybrid("lfm2"),
        hybrid("mamba2", use_bias=True),
        hybrid("nemotron_h", num_nextn_predict_layers=1),
        hybrid("deepseek_v32", model_type="glm_moe_dsa", indexer_types=["full", "shared", "full", "shared"]),
        hybrid("qwen3_next", layer_types=["linear_attention"] * 8),
    ],
}
BUILT = ("qwen3_next", "nemotron_h", "deepseek_v32")


@pytest.mark.parametrize("family", BUILT)
def test_other_token_mixers_are_built(family: str) -> None:
    model = hybrid(family).model_copy(update={"mtp": None})
    assert {finding.rule for finding in TABLE.violations(given(model=model))} <= {"megatron.A15"}


@pytest.mark.parametrize(
    ("family", "strategy", "broken"),
    [
        ("qwen3_next", Strategy(tp=4, sp=True), False),
        ("qwen3_next", Strategy(tp=2, sp=True, cp=4, cp_kind="all_to_all"), True),
        ("nemotron_h", Strategy(tp=4, sp=True), False),
        ("nemotron_h", Strategy(tp=8, sp=True), True),
        ("nemotron_h", Strategy(tp=1, cp=8, cp_kind="ring"), False),
        ("nemotron_h", Strategy(tp=2, sp=True, cp=8, cp_kind="ring"), True),
    ],
)
def test_heads_of_other_mixers_divide_over_their_axes(family: str, strategy: Strategy, broken: bool) -> None:
    found = {finding.rule for finding in TABLE.violations(given(strategy, hybrid(family)))}
    assert ("megatron.B14" in found) == broken


def test_a_plain_strategy_breaks_nothing() -> None:
    assert TABLE.violations(given()) == []
    assert TABLE.violations(given(replace(INTERLEAVED, tp=2, sp=True, dp_shard=2))) == []
    assert TABLE.violations(given(Strategy(tp=2, sp=True, ep=4, dp_shard=4), MOE)) == []


@pytest.mark.parametrize("rule", BROKEN)
def test_each_strategy_rule_fires(rule: str) -> None:
    found = {finding.rule: finding for finding in TABLE.violations(BROKEN[rule])}
    assert f"megatron.{rule}" in found
    assert found[f"megatron.{rule}"].message
    assert found[f"megatron.{rule}"].source


@pytest.mark.parametrize("rule", UNBUILDABLE)
def test_each_model_rule_fires(rule: str) -> None:
    for model in UNBUILDABLE[rule]:
        found = {finding.rule for finding in TABLE.violations(given(model=model))}
        assert f"megatron.{rule}" in found
        assert f"megatron.{rule}" not in {f.rule for f in TABLE.violations(given(model=model), model_too=False)}


def test_every_rule_has_a_case_here() -> None:
    assert set(BROKEN) == {rule.id for rule in (*PROBLEM_RULES, *STRATEGY_RULES, KINDS, PACKED)}
    # M12 needs a mixture that the document itself nearly refuses; see the test below.
    assert set(UNBUILDABLE) | {"M12"} == {rule.id for rule in MODEL_RULES}


def test_expert_bias_behind_a_plain_router_cannot_be_built() -> None:
    model = BROKEN["B11"].model
    assert "megatron.M12" in {finding.rule for finding in TABLE.violations(given(model=model))}


def test_rule_ids_are_unique_and_sourced() -> None:
    rules = (*TABLE.model_rules, *TABLE.strategy_rules)
    assert len({rule.id for rule in rules}) == len(rules) == len(BROKEN) + len(MODEL_RULES)
    assert all(rule.source for rule in rules)


@pytest.mark.parametrize("room", ["megatron", "megatron-bridge", "mindspeed", "deepspeed", "megatron-deepspeed"])
def test_rules_name_the_fields_that_they_are_about(room: str) -> None:
    for release in backend(room).releases:
        table = release.space.rules
        assert all(rule.fields == () for rule in table.model_rules)
        named = {name for rule in table.strategy_rules for name in rule.fields}
        assert named <= {*PINNABLE, "recompute_modules"}
        assert all(rule.fields for rule in table.strategy_rules)


FULL = replace(PIPELINE, recompute="full")
OFFLOADED = replace(PIPELINE, activation_offload=True)


@pytest.mark.parametrize(
    ("layers", "strategy", "broken"),
    [
        ({"recompute_layers_per_chunk": (2, 2)}, FULL, set()),
        ({"recompute_layers_per_chunk": (0, 0)}, FULL, {"megatron.P4"}),
        ({"layers_per_chunk": (2, 6), "recompute_layers_per_chunk": (2, 4)}, FULL, set()),
        ({"layers_per_chunk": (2, 6), "recompute_layers_per_chunk": (1, 4)}, FULL, {"megatron.P4"}),
        ({"activation_offload_layers": [4, 4]}, OFFLOADED, set()),
        ({"activation_offload_layers": [3]}, Strategy(activation_offload=True), set()),
        ({"activation_offload_layers": [3, 4]}, OFFLOADED, {"megatron.P5"}),
    ],
)
def test_one_setting_serves_all_stages(layers: dict[str, Any], strategy: Strategy, broken: set[str]) -> None:
    plan = make_plan(strategy, **layers)
    assert {finding.rule for finding in TABLE.violations(rule_input(plan))} == broken


def test_a_refused_plan_lists_every_rule_at_once() -> None:
    plan = make_plan(Strategy(tp=3, dp_shard=2, overlap_grad_reduce=False))
    with pytest.raises(BackEndRefused) as caught:
        emit(plan, "torchrun")
    for rule in ("megatron.B2", "megatron.A9", "megatron.D5"):
        assert rule in caught.value.what
    assert caught.value.exit_code == 8
    assert caught.value.hint


@pytest.mark.parametrize(
    ("strategy", "architecture", "wanted"),
    [
        (Strategy(tp=2), "hopper", "1"),
        (Strategy(cp=2, cp_kind="ring"), "ampere", "1"),
        (Strategy(tp=2), "cdna3", "1"),
        (Strategy(tp=2), "blackwell", None),
        (Strategy(dp_shard=8), "hopper", None),
        (Strategy(dp_shard=8, zero_stage=3), "hopper", "8"),
        (Strategy(tp=2, dp_shard=8, zero_stage=2), "hopper", "8"),
        (Strategy(ep=2, dp_shard=2, overlap_ep=True), "hopper", "32"),
    ],
)
def test_device_connections(strategy: Strategy, architecture: str, wanted: str | None) -> None:
    assert max_connections(strategy, architecture) == wanted
    variables = environment(strategy, architecture, fine_grained_offload=False)
    assert variables.get("CUDA_DEVICE_MAX_CONNECTIONS") == wanted
    assert "NVTE_CPU_OFFLOAD_V1" not in variables


def test_module_offload_needs_its_variable() -> None:
    assert environment(Strategy(), "hopper", fine_grained_offload=True)["NVTE_CPU_OFFLOAD_V1"] == "1"


def test_an_mlp_with_biases_is_not_recomputed_alone() -> None:
    strategy = Strategy(recompute="selective", recompute_modules=("mlp",))
    kind = DENSE.layer_kinds[0]
    assert kind.mlp is not None
    biased = kind.model_copy(update={"mlp": kind.mlp.model_copy(update={"bias": True})})
    found = TABLE.violations(given(strategy, DENSE.model_copy(update={"layer_kinds": (biased,)})))
    assert "megatron.P2" in {each.rule for each in found}
    assert not TABLE.violations(given(strategy))
