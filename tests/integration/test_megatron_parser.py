"""The real Megatron-LM agrees with our rules: its own parser and validators, in one warm process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings

from planner.backends.checking.validator import Verdict
from planner.backends.checking.worker import Worker
from planner.backends.megatron.space import TABLE
from planner.backends.rules.rule import rule_input
from planner.model.builtin import builtin_model, builtin_models
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.megatron_models import REFUSED_MODELS
from tests.megatron_verdicts import ask_megatron, derived_facts, disagreement
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model, make_plan
from tests.plan_strategies import plans
from tests.round_trip import as_spelled, plans_of_the_space, question
from tests.validators import SharedWorkers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def megatron(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("megatron-core")


def assert_accepted(answer: Verdict, plan: Plan) -> None:
    """Megatron accepts and derives the same numbers."""
    assert answer.accepted, answer
    wanted = derived_facts(plan)
    assert {name: answer.facts[name] for name in wanted} == wanted


DENSE, GQA = make_model(8), make_model(24, num_kv_heads=4)
MOE = make_moe_model(8, num_dense=1, shared=512)
MLA = make_mla_model(12, num_mtp_layers=1)
INTERLEAVED = Strategy(pp=4, vpp=2, schedule="interleaved", microbatch_group_size=4, num_microbatches=8)

ACCEPTED: dict[str, tuple[Strategy, ModelSpec]] = {
    "one device": (Strategy(), DENSE),
    "tied embeddings": (Strategy(dp_shard=2), make_model(8, tie_embeddings=True)),
    "tp": (Strategy(tp=4, dp_shard=2), DENSE),
    "tp sp": (Strategy(tp=4, sp=True, dp_shard=2), DENSE),
    "tp overlap": (Strategy(tp=4, sp=True, overlap_tp=True), DENSE),
    "gqa, tp above kv heads": (Strategy(tp=8, sp=True), GQA),
    "pp": (Strategy(pp=4, num_microbatches=8), DENSE),
    "pp, fewer micro-batches than stages": (Strategy(pp=4, num_microbatches=2), DENSE),
    "deepep": (Strategy(ep=4, dp_shard=8, dispatcher="deepep"), MOE),
    "hybridep": (Strategy(ep=4, dp_shard=8, dispatcher="hybridep"), MOE),
    "deepep beside overlap": (
        replace(INTERLEAVED, ep=2, dp_shard=2, dispatcher="deepep", overlap_ep=True),
        make_moe_model(8, num_dense=1),
    ),
    "all-gather": (Strategy(ep=4, dp_shard=8, dispatcher="allgather"), MOE),
    "latent up-projections": (
        Strategy(ep=4, dp_shard=8, recompute="selective", recompute_modules=("mla_up_proj", "norm")),
        MLA,
    ),
    "interleaved": (INTERLEAVED, DENSE),
    "interleaved, larger groups": (replace(INTERLEAVED, num_microbatches=12, microbatch_group_size=6), DENSE),
    "interleaved, three chunks": (replace(INTERLEAVED, vpp=3), GQA),
    "ring": (Strategy(cp=4, cp_kind="ring", dp_shard=2), DENSE),
    "all to all": (Strategy(cp=4, cp_kind="all_to_all", dp_shard=2), make_model(8, num_kv_heads=16)),
    "tp cp pp dp": (Strategy(tp=2, sp=True, cp=2, cp_kind="ring", pp=2, dp_shard=2, num_microbatches=4), GQA),
    "ddp": (Strategy(dp_shard=8, zero_stage=0, overlap_param_gather=False), DENSE),
    "zero 1 replicated": (Strategy(dp_replicate=2, dp_shard=4), DENSE),
    "zero 2": (Strategy(dp_shard=8, zero_stage=2), DENSE),
    "zero 3": (Strategy(dp_shard=8, zero_stage=3), DENSE),
    "zero 3 replicated": (Strategy(dp_replicate=2, dp_shard=4, zero_stage=3), DENSE),
    "zero 3 tp": (Strategy(tp=2, sp=True, dp_shard=4, zero_stage=3), GQA),
    "zero 3 pp": (Strategy(pp=2, dp_shard=4, zero_stage=3, num_microbatches=4), GQA),
    "no overlap": (Strategy(dp_shard=8, overlap_grad_reduce=False, overlap_param_gather=False), DENSE),
    "full recompute": (Strategy(recompute="full", dp_shard=2), DENSE),
    "core attention recompute": (Strategy(recompute="selective", recompute_modules=("attention_core", "mlp")), DENSE),
    "expert recompute": (Strategy(ep=4, dp_shard=8, recompute="selective", recompute_modules=("moe", "norm")), MOE),
    "expert activation": (Strategy(ep=4, dp_shard=8, recompute="selective", recompute_modules=("activation",)), MOE),
    "optimizer offload": (Strategy(dp_shard=4, optimizer_offload=True), DENSE),
    "activation offload": (Strategy(tp=2, pp=2, num_microbatches=4, activation_offload=True), DENSE),
    "expert offload": (Strategy(ep=2, pp=2, dp_shard=2, num_microbatches=4, activation_offload=True), MOE),
    "ep": (Strategy(ep=8, dp_shard=8), MOE),
    "ep tp, experts whole": (Strategy(tp=2, sp=True, ep=4, dp_shard=4), MOE),
    "ep etp": (Strategy(tp=2, sp=True, ep=4, etp=2, dp_shard=4), MOE),
    "ep pp": (Strategy(pp=2, ep=4, dp_shard=4, num_microbatches=4), MOE),
    "ep overlap": (replace(INTERLEAVED, ep=2, dp_shard=2, overlap_ep=True), MOE),
    "mla mtp": (Strategy(tp=2, sp=True, ep=8, dp_shard=8), MLA),
    "mla mtp pp": (replace(INTERLEAVED, vpp=3, tp=2, sp=True, ep=8, dp_shard=8), MLA),
    "other axis order": (
        Strategy(pp=2, dp_shard=4, num_microbatches=4, axis_order="tp-cp-ep-pp-dp"),
        DENSE,
    ),
}

REFUSED: dict[str, tuple[str, Strategy, ModelSpec]] = {
    "interleaved without pipeline": ("A8", Strategy(vpp=2, schedule="interleaved", microbatch_group_size=1), DENSE),
    "gather without reduce": ("A9", Strategy(dp_shard=2, overlap_grad_reduce=False), DENSE),
    "tp overlap without sp": ("A18", Strategy(tp=2, overlap_tp=True), DENSE),
    "experts over ranks": ("A21", Strategy(dp_shard=3, ep=3), MOE),
    "ep of a dense model": ("A21", Strategy(dp_shard=2, ep=2), DENSE),
    "heads": ("B2", Strategy(tp=3), DENSE),
    "kv heads": ("B2b", Strategy(tp=6), make_model(8, num_heads=12, num_kv_heads=4)),
    "ep overlap without interleaving": (
        "B13",
        Strategy(pp=2, ep=2, dp_shard=2, num_microbatches=4, overlap_ep=True),
        MOE,
    ),
    "ep overlap with full recompute": (
        "B13",
        replace(INTERLEAVED, ep=2, dp_shard=2, overlap_ep=True, recompute="full"),
        MOE,
    ),
    "expert grid": ("C1", Strategy(tp=2, sp=True, pp=2, ep=8, etp=2, dp_shard=2, num_microbatches=4), MOE),
    "axis order": (
        "C2",
        Strategy(cp=2, cp_kind="ring", pp=2, dp_shard=2, num_microbatches=4, axis_order="tp-cp-ep-pp-dp"),
        DENSE,
    ),
    "expert optimizer instances": ("C4", Strategy(ep=8, dp_replicate=2, dp_shard=4), MOE),
    "offload without sharding": (
        "O1",
        Strategy(optimizer_offload=True, zero_stage=0, overlap_param_gather=False),
        DENSE,
    ),
    "interleaved, too few micro-batches": ("D2", replace(INTERLEAVED, num_microbatches=2), DENSE),
    "interleaved, bad rest": ("D2", replace(INTERLEAVED, num_microbatches=6), DENSE),
    "experts without sp": ("D3", Strategy(tp=2, ep=2, dp_shard=2), MOE),
    "all-to-all heads": ("U2", Strategy(cp=8, cp_kind="all_to_all"), make_model(8, num_kv_heads=4)),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_megatron_accepts_what_we_emit(megatron: Worker, name: str) -> None:
    strategy, model = ACCEPTED[name]
    plan = make_plan(strategy, model)
    assert TABLE.violations(rule_input(plan)) == []
    assert_accepted(ask_megatron(megatron, plan), plan)


@pytest.mark.parametrize("name", REFUSED)
def test_our_rules_stop_at_the_same_place(megatron: Worker, name: str) -> None:
    rule, strategy, model = REFUSED[name]
    plan = make_plan(strategy, model)
    findings = TABLE.violations(rule_input(plan))
    assert f"megatron.{rule}" in {finding.rule for finding in findings}
    assert disagreement(ask_megatron(megatron, plan), plan, findings) is None


@pytest.mark.parametrize("name", sorted(set(builtin_models()) - set(REFUSED_MODELS)))
def test_models_that_ship(megatron: Worker, name: str) -> None:
    model = builtin_model(name)
    experts = any(kind.moe for kind in model.layer_kinds)
    strategy = Strategy(pp=2, dp_shard=4, ep=4 if experts else 1, num_microbatches=4)
    workload = Workload(global_batch_size=16, sequence_length=min(model.max_sequence_length, 4096))
    plan = make_plan(strategy, model, workload=workload)
    assert TABLE.violations(rule_input(plan)) == []
    assert_accepted(ask_megatron(megatron, plan), plan)


@pytest.mark.parametrize(
    ("layers", "strategy"),
    [
        ((1, 3, 3, 1), Strategy(pp=4, num_microbatches=8)),
        ((0, 4, 4, 0), Strategy(pp=4, num_microbatches=8)),
        ((2, 2, 2, 0, 0, 0, 1, 1), INTERLEAVED),
        ((3, 5), Strategy(pp=2, tp=2, sp=True, num_microbatches=4)),
    ],
)
def test_uneven_stages(megatron: Worker, layers: tuple[int, ...], strategy: Strategy) -> None:
    plan = make_plan(strategy, DENSE, layers_per_chunk=layers)
    assert TABLE.violations(rule_input(plan)) == []
    assert_accepted(ask_megatron(megatron, plan), plan)


def test_uneven_stages_with_mtp(megatron: Worker) -> None:
    plan = make_plan(Strategy(pp=4, ep=2, dp_shard=2, num_microbatches=8), MLA, layers_per_chunk=(4, 3, 3, 2))
    assert_accepted(ask_megatron(megatron, plan), plan)


def test_layers_offloaded_whole(megatron: Worker) -> None:
    plan = make_plan(Strategy(dp_shard=2, activation_offload=True), DENSE, activation_offload_layers=[3])
    assert TABLE.violations(rule_input(plan)) == []
    assert_accepted(ask_megatron(megatron, plan), plan)


@pytest.mark.parametrize(
    ("rule", "workload"),
    [
        ("A14", Workload(global_batch_size=2, sequence_length=4094)),
        ("A3", Workload(global_batch_size=3, sequence_length=4096)),
        ("A13", Workload(global_batch_size=2, sequence_length=4096, optimizer="muon")),
    ],
)
def test_workloads(megatron: Worker, rule: str, workload: Workload) -> None:
    zero_stage = 3 if rule == "A13" else 1
    plan = make_plan(Strategy(cp=2, cp_kind="ring", dp_shard=2, zero_stage=zero_stage), DENSE, workload=workload)
    findings = TABLE.violations(rule_input(plan))
    assert f"megatron.{rule}" in {finding.rule for finding in findings}
    assert disagreement(ask_megatron(megatron, plan), plan, findings) is None


@pytest.mark.parametrize("precision", ["fp16", "fp8"])
@pytest.mark.parametrize("architecture", ["hopper", "blackwell"])
def test_precisions(megatron: Worker, precision: Any, architecture: str) -> None:
    workload = Workload(global_batch_size=2, sequence_length=4096, precision=precision, gradient_dtype="bf16")
    plan = make_plan(Strategy(tp=2, sp=True, dp_shard=2), DENSE, make_cluster(4, architecture=architecture), workload)
    assert TABLE.violations(rule_input(plan)) == []
    assert_accepted(ask_megatron(megatron, plan), plan)


def test_the_environment_is_needed(megatron: Worker) -> None:
    tensor = make_plan(Strategy(tp=2))
    assert ask_megatron(megatron, tensor, environ={}).stage == "validate"
    assert (
        ask_megatron(megatron, make_plan(Strategy(tp=2), cluster=make_cluster(2, architecture="blackwell")), {}).stage
        == "ok"
    )
    sharded = make_plan(Strategy(dp_shard=2, zero_stage=3))
    assert ask_megatron(megatron, sharded, environ={"CUDA_DEVICE_MAX_CONNECTIONS": "1"}).stage == "validate"
    offloaded = make_plan(Strategy(pp=2, num_microbatches=4, activation_offload=True))
    assert ask_megatron(megatron, offloaded, environ={}).stage == "validate"


def test_an_unknown_flag_is_refused_by_the_parser(megatron: Worker) -> None:
    answer = ask_megatron(megatron, make_plan(), extra=("--no-such-flag",))
    assert answer.stage == "parse"
    assert "--no-such-flag" in answer.message


def test_random_plans_get_the_same_verdict(megatron: Worker) -> None:
    verdicts: list[bool] = []

    @given(plans(("1f1b", "interleaved"), one_setting=True))
    @settings(max_examples=120)
    def check(wanted: Plan) -> None:
        plan = as_spelled(wanted, "megatron")
        findings = TABLE.violations(rule_input(plan))
        assume(not any(finding.rule.startswith("megatron.P") for finding in findings))  # what no flag says
        answer = ask_megatron(megatron, plan)
        assert disagreement(answer, plan, findings) is None
        verdicts.append(answer.stage == "ok")

    check()
    assert verdicts.count(True) >= 20
    assert verdicts.count(False) >= 5


@pytest.mark.parametrize(
    ("model", "cluster", "devices"),
    [
        ("llama-3.1-8b", "dgx-h100", 24),
        ("gpt2-xl", "dgx-a100-40g", 8),
        ("qwen3-30b-a3b", "dgx-b200", 16),
        ("deepseek-v2", "dgx-h100", 96),
    ],
)
def test_plans_of_the_space_are_accepted(megatron: Worker, model: str, cluster: str, devices: int) -> None:
    found = list(plans_of_the_space(question(model, cluster, devices), "megatron", seed=2, wanted=10))
    assert len(found) == 10
    for plan in found:
        assert_accepted(ask_megatron(megatron, plan), plan)
