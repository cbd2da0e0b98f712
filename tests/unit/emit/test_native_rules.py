from __future__ import annotations

from typing import Any

import pytest

from planner.backends.native.model_rules import MODEL_RULES
from planner.backends.native.space import STRATEGY_RULES, TABLE, spelled, violations
from planner.backends.rules.rule import RuleInput, rule_input
from planner.model.spec import LayerSpec, ModelSpec
from planner.plan.plan import Plan, StageRecompute
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.native_models import tiny_gpt2, tiny_llama, tiny_qwen3_moe
from tests.plan_factory import make_mla_model, make_moe_model, make_plan
from tests.rules_over_plans import over_plans

LLAMA, MOE = tiny_llama(), tiny_qwen3_moe()


def broken(
    strategy: dict[str, Any] | None = None, model: ModelSpec = LLAMA, workload: dict[str, Any] | None = None
) -> set[str]:
    """Ids of the rules that a strategy on 32-token samples breaks."""
    chosen = Strategy(**(strategy or {}))
    given = {"global_batch_size": chosen.global_batch_size, "sequence_length": 32, **(workload or {})}
    return {found.rule.removeprefix("native.") for found in violations(RuleInput(chosen, model, Workload(**given)))}


def layer(model: ModelSpec, **changes: Any) -> ModelSpec:
    """The model with its first layer kind changed; ``attention`` and ``moe`` take dicts of changes."""
    kind: LayerSpec = model.layer_kinds[0]
    for part in ("attention", "moe"):
        if part in changes:
            changes[part] = getattr(kind, part).model_copy(update=changes[part])
    return model.model_copy(update={"layer_kinds": (kind.model_copy(update=changes), *model.layer_kinds[1:])})


def test_a_plain_strategy_breaks_nothing() -> None:
    assert broken() == set()
    assert broken({"tp": 2, "sp": True, "cp": 2, "cp_kind": "ring", "dp_shard": 2}) == set()


@pytest.mark.parametrize(
    ("rule", "strategy"),
    [
        ("T1", {"tp": 8}),  # 4 key-value heads
        ("T2", {"tp": 5}),
        ("T4", {"sp": True}),
        ("C1", {"cp": 32, "cp_kind": "ring"}),
        ("C1", {"cp": 16, "cp_kind": "ring", "tp": 4, "sp": True}),
        ("C2", {"cp": 2}),
        ("C2", {"cp_kind": "ring"}),
        ("C3", {"cp": 8, "cp_kind": "all_to_all"}),
        ("C3", {"cp": 4, "tp": 2, "cp_kind": "all_to_all"}),
        ("E1", {"ep": 2, "dp_shard": 2}),
        ("E2", {"etp": 2, "tp": 2}),
        ("P1", {"pp": 2, "schedule": "zb_h1", "num_microbatches": 5}),
        ("P2", {"pp": 2, "vpp": 2, "num_microbatches": 4}),
        ("P2", {"pp": 2, "vpp": 3, "schedule": "zbv", "num_microbatches": 4}),
        ("P2", {"pp": 2, "schedule": "interleaved", "num_microbatches": 4}),
        ("P2", {"vpp": 2}),
        ("P3", {"pp": 4, "num_microbatches": 3}),
        ("P3", {"pp": 2, "vpp": 2, "schedule": "dualpipev", "num_microbatches": 3}),
        ("P4", {"pp": 2, "vpp": 2, "schedule": "interleaved", "num_microbatches": 5}),
        ("P4", {"pp": 2, "vpp": 2, "schedule": "interleaved", "num_microbatches": 4, "microbatch_group_size": 4}),
        ("Z1", {"pp": 2, "num_microbatches": 2, "zero_stage": 2}),
        ("R2", {"optimizer_offload": True}),
        ("R2", {"activation_offload": True}),
        ("O1", {"pp": 2, "dp_shard": 2, "num_microbatches": 2}),
        ("O1", {"dp_shard": 2, "overlap_grad_reduce": False}),
        ("O1", {"dp_shard": 2, "zero_stage": 3, "overlap_param_gather": False}),
        ("O2", {"tp": 2, "sp": True, "overlap_tp": True}),
    ],
)
def test_strategy_rule(rule: str, strategy: dict[str, Any]) -> None:
    assert rule in broken(strategy)


@pytest.mark.parametrize(
    ("rule", "strategy"),
    [
        ("E1", {"ep": 3, "dp_shard": 3}),
        ("E2", {"ep": 4, "dp_replicate": 2, "dp_shard": 2}),
        ("E3", {"tp": 2}),
        ("O1", {"tp": 2, "sp": True, "overlap_grad_reduce": False}),
        ("O3", {"ep": 2, "dp_shard": 2, "overlap_ep": True}),
    ],
)
def test_expert_rule(rule: str, strategy: dict[str, Any]) -> None:
    assert rule in broken(strategy, MOE)


def test_experts_may_cross_replicas_only_when_nothing_is_sharded() -> None:
    assert broken({"ep": 4, "dp_replicate": 2, "dp_shard": 2, "zero_stage": 0}, MOE) == set()


@pytest.mark.parametrize(
    ("rule", "model"),
    [
        ("M1", make_mla_model()),
        ("M2", make_moe_model(num_mtp_layers=1)),
        ("M2", LLAMA.model_copy(update={"embedding_size": 32})),
        ("M3", layer(LLAMA, attention={"sinks": True})),
        ("M3", layer(LLAMA, attention={"logit_softcap": 50.0})),
        ("M3", layer(LLAMA, attention={"causal": False})),
        ("M3", layer(LLAMA, attention={"num_kv_heads": 3})),
        ("M4", LLAMA.model_copy(update={"position": "alibi"})),
        ("M4", tiny_gpt2().model_copy(update={"learned_positions": 31})),
        ("M5", layer(MOE, moe={"expert_bias": True})),
        ("M5", layer(MOE, moe={"num_groups": 4})),
        ("M5", layer(MOE, moe={"router_bias": True, "score_function": "sigmoid"})),
        ("M6", layer(LLAMA, num_norms=3)),
        ("M6", layer(LLAMA, mlp=None)),
        ("M6", layer(LLAMA, parallel_residual=True, norm_placement="post_branch")),
        ("M7", LLAMA.model_copy(update={"activation_function": "relu2"})),
        ("M8", LLAMA.model_copy(update={"family": "gemma"})),
        ("M8", LLAMA.model_copy(update={"family": "smollm3"})),
    ],
)
def test_model_rule(rule: str, model: ModelSpec) -> None:
    assert rule in broken(model=model)


@pytest.mark.parametrize("workload", [{"precision": "fp8"}, {"optimizer": "muon"}, {"dropout": True}])
def test_training_rule(workload: dict[str, Any]) -> None:
    assert broken(workload=workload) == {"M9"}


def test_batch_rule_names_the_factors() -> None:
    assert broken({"dp_shard": 2}, workload={"global_batch_size": 3}) == {"G1"}


def test_tied_model_needs_one_stage() -> None:
    assert broken({"pp": 2, "num_microbatches": 2}, tiny_llama(tie_embeddings=True)) == {"P5"}


def test_full_width_query_norm_needs_tp_1() -> None:
    wide = layer(LLAMA, attention={"qk_norm": "full_width"})
    assert broken({"tp": 2}, wide) == {"T3"}
    assert broken({}, wide) == set()


def test_norm_recompute_needs_norms_before_the_branches() -> None:
    norms = {"recompute": "selective", "recompute_modules": ("norm", "mlp")}
    assert broken(norms) == set()
    assert broken(norms, layer(LLAMA, norm_placement="post_residual")) == {"R1"}


def test_the_search_asks_with_a_split_before_there_is_a_plan() -> None:
    strategy = Strategy(pp=2, vpp=2, schedule="zbv", num_microbatches=4)
    workload = Workload(global_batch_size=4, sequence_length=32)
    found = violations(RuleInput(strategy, LLAMA, workload, architecture="hopper", layers_per_chunk=(2, 0, 1, 1)))
    assert [finding.rule for finding in found] == ["native.L3"]
    assert violations(RuleInput(strategy, LLAMA, workload, "hopper", (0, 2, 2, 0))) == []


def _with_stages(plan: Plan, **changes: Any) -> Plan:
    first = plan.stages[0].model_copy(update=changes)
    return plan.model_copy(update={"stages": (first, *plan.stages[1:])})


def test_layout_rules() -> None:
    plan = make_plan(Strategy(pp=2, num_microbatches=4), LLAMA)
    chunk = plan.stages[0].chunks[0]
    late = _with_stages(plan, chunks=(chunk.model_copy(update={"first_layer": 1}),))
    headless = _with_stages(plan, chunks=(chunk.model_copy(update={"has_embedding": False}),))
    missing = _with_stages(plan, chunks=())
    miscounted = _with_stages(plan, recompute=StageRecompute(policy="full", num_layers_per_chunk=(1, 1)))
    empty = make_plan(Strategy(pp=2, vpp=2, num_microbatches=4, schedule="zbv"), LLAMA, layers_per_chunk=(2, 0, 1, 1))
    found = [[v.rule for v in violations(rule_input(p))] for p in (plan, late, headless, missing, miscounted, empty)]
    assert found == [[], ["native.L1"], ["native.L2"], ["native.L1", "native.L2"], ["native.L1"], ["native.L3"]]


def test_every_rule_has_an_id_and_a_source() -> None:
    ids = [rule.id for rule in over_plans(TABLE)]
    assert len(ids) == len(set(ids)) == len(MODEL_RULES) + len(STRATEGY_RULES)
    assert all(rule.source for rule in over_plans(TABLE))


def test_what_the_trainer_lacks_is_refused_and_named() -> None:
    wanted = Strategy(
        pp=2,
        dp_shard=2,
        zero_stage=3,
        num_microbatches=5,
        schedule="zb_h1",
        optimizer_offload=True,
        activation_offload=True,
        overlap_tp=True,
        tp=2,
    )
    found = {each.rule.removeprefix("native."): each.fields for each in violations(rule_input(make_plan(wanted)))}
    assert set(found) == {"P1", "Z1", "O1", "O2", "R2"}
    assert {name: fields[0] for name, fields in found.items()} == {
        "P1": "num_microbatches",
        "Z1": "zero_stage",
        "O1": "overlap_grad_reduce",
        "O2": "overlap_tp",
        "R2": "optimizer_offload",
    }


@pytest.mark.parametrize(("pp", "num_microbatches"), [(2, 1), (2, 4), (4, 3), (4, 6), (4, 8)])
def test_zb_h1_runs_in_whole_rounds(pp: int, num_microbatches: int) -> None:
    assert broken({"pp": pp, "num_microbatches": num_microbatches, "schedule": "zb_h1"}) == set()


def test_torch_derives_the_micro_batch_group() -> None:
    wanted = {"pp": 4, "vpp": 2, "num_microbatches": 6, "schedule": "interleaved"}
    model = tiny_llama(num_layers=8)
    assert broken({**wanted, "microbatch_group_size": 4}, model) == {"P4"}
    assert broken({**wanted, "microbatch_group_size": 6}, model) == set()


def test_switches_that_mean_nothing_have_one_spelling() -> None:
    """One rank of each axis: nothing is reduced, gathered or split, whatever the switches say."""
    strange = Strategy(
        num_microbatches=4, overlap_grad_reduce=False, overlap_param_gather=False, overlap_tp=True, overlap_ep=True
    )
    given = RuleInput(strange, LLAMA, Workload(global_batch_size=4, sequence_length=32))
    assert spelled(strange, given) == Strategy(num_microbatches=4)


def test_a_switch_that_means_something_is_never_spelled_away() -> None:
    for strategy in (
        Strategy(dp_shard=2, overlap_grad_reduce=False),
        Strategy(dp_shard=2, overlap_param_gather=False),
        Strategy(dp_shard=2, pp=2, num_microbatches=2, overlap_grad_reduce=True),
        Strategy(tp=2, overlap_tp=True),
    ):
        workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=32)
        given = RuleInput(strategy, LLAMA, workload)
        assert spelled(strategy, given) == strategy
        assert {finding.rule for finding in violations(given)} & {"native.O1", "native.O2"}
