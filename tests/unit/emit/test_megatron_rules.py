from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.backends.megatron import RuleInput, emit, rules, violations
from planner.backends.megatron.environment import environment, max_connections
from planner.backends.megatron.model_rules import MODEL_RULES
from planner.backends.megatron.space import STRATEGY_RULES
from planner.errors import BackEndRefused
from planner.model.spec import LayerRun, LayerSpec, MlpSpec, ModelSpec, VisionSpec
from planner.problem import Workload
from planner.strategy import Strategy
from tests.plan_factory import make_model, make_moe_model, make_plan

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


BROKEN: dict[str, RuleInput] = {
    "A3": given(Strategy(dp_shard=2), global_batch_size=3),
    "A8": given(Strategy(vpp=2, schedule="interleaved")),
    "A9": given(Strategy(overlap_grad_reduce=False)),
    "A13": given(Strategy(zero_stage=2), optimizer="muon"),
    "A14": given(Strategy(cp=2, cp_kind="ring"), sequence_length=4094),
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
    "P1": given(Strategy(pp=2, schedule="zb_h1", num_microbatches=4)),
    "P2": given(Strategy(recompute="selective", recompute_modules=("norm",))),
    "P3": given(Strategy(recompute="full", activation_offload=True)),
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
}


def test_a_plain_strategy_breaks_nothing() -> None:
    assert violations(given()) == []
    assert violations(given(replace(INTERLEAVED, tp=2, sp=True, dp_shard=2))) == []
    assert violations(given(Strategy(tp=2, sp=True, ep=4, dp_shard=4), MOE)) == []


@pytest.mark.parametrize("rule", BROKEN)
def test_each_strategy_rule_fires(rule: str) -> None:
    found = {finding.rule: finding for finding in violations(BROKEN[rule])}
    assert f"megatron.{rule}" in found
    assert found[f"megatron.{rule}"].message
    assert found[f"megatron.{rule}"].source


@pytest.mark.parametrize("rule", UNBUILDABLE)
def test_each_model_rule_fires(rule: str) -> None:
    for model in UNBUILDABLE[rule]:
        found = {finding.rule for finding in violations(given(model=model))}
        assert f"megatron.{rule}" in found
        assert f"megatron.{rule}" not in {f.rule for f in violations(given(model=model), model_too=False)}


def test_every_rule_has_a_case_here() -> None:
    assert set(BROKEN) == {rule.id for rule in STRATEGY_RULES}
    # M12 needs a mixture that the document itself nearly refuses; see the test below.
    assert set(UNBUILDABLE) | {"M12"} == {rule.id for rule in MODEL_RULES}


def test_expert_bias_behind_a_plain_router_cannot_be_built() -> None:
    model = BROKEN["B11"].model
    assert "megatron.M12" in {finding.rule for finding in violations(given(model=model))}


def test_rule_ids_are_unique_and_sourced() -> None:
    ids = [rule.id for rule in rules()]
    assert len(ids) == len(set(ids)) == len(STRATEGY_RULES) + len(MODEL_RULES)
    assert all(rule.source for rule in rules())


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
