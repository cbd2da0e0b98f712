"""The real megatron-core 0.12.1 agrees with our rules: its own configs, groups, chunks and schedule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from planner.backends.checking.emitted import read_folder
from planner.backends.checking.validator import Verdict
from planner.backends.checking.worker import Worker
from planner.backends.emission.layout import chunks_in_model_order, layout_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.catalogue import validator
from planner.backends.folders.report import Checker
from planner.backends.launch.spec import launch_spec
from planner.backends.launch.torchrun import launch_script
from planner.backends.megatron.arguments import write_arguments
from planner.backends.megatron.write import data_arguments
from planner.backends.mindspeed.flags import sections
from planner.backends.mindspeed.space import TABLE
from planner.backends.mindspeed.validator import question
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused
from planner.model.builtin import builtin_model, builtin_models
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.mindspeed_plans import DUALPIPEV, INTERLEAVED, ascend_cluster, in_bf16_with_adam, on_ascend
from tests.plan_factory import make_mla_model, make_model, make_moe_model, make_plan
from tests.plan_strategies import plans
from tests.round_trip import as_spelled, plans_of_the_space
from tests.round_trip import question as asked_of
from tests.validators import SharedWorkers

emit = emitter("mindspeed")

pytestmark = pytest.mark.slow

DENSE, GQA = make_model(8), make_model(24, num_kv_heads=4)
MOE = make_moe_model(8, num_dense=1, shared=512)
MLA = make_mla_model(12, num_mtp_layers=1)


@pytest.fixture(scope="module")
def worker(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("mindspeed")


def ask(worker: Worker, plan: Plan, extra: str = "") -> Verdict:
    """The release's verdict on the arguments of a plan, whatever our rules say about it."""
    launch = launch_script(launch_spec(plan, "train.sh", {}))
    return worker.ask(question(write_arguments(sections(plan)) + extra, data_arguments(plan), launch))


def assert_accepted(verdict: Verdict, plan: Plan) -> None:
    """The release accepts and derives the same numbers."""
    assert verdict.accepted, verdict
    strategy, facts = plan.chosen(), verdict.facts
    wanted = {
        name: getattr(strategy, name) for name in ("dp", "num_microbatches", "vpp", "tp", "ep", "etp", "cp", "sp")
    }
    assert {name: facts[name] for name in wanted} == wanted
    assert facts["layers_per_chunk"] == [chunk.num_layers for chunk in chunks_in_model_order(layout_of(plan))]
    assert facts["optimizer_shards"] == strategy.dp_shard * strategy.cp
    model = plan.problem.model
    assert facts["expert_layers"] == [model.layer_kinds[kind].moe is not None for kind in model.layer_kind_sequence()]


NO_OVERLAP = {"overlap_grad_reduce": False, "overlap_param_gather": False}
ACCEPTED: dict[str, tuple[Strategy, ModelSpec]] = {
    "dualpipev, layers left over": (DUALPIPEV, make_model(10)),
    "dualpipev, layers left over, experts": (DUALPIPEV, make_moe_model(10, num_dense=1)),
    "one device": (Strategy(), DENSE),
    "tied embeddings": (Strategy(dp_shard=2), make_model(8, tie_embeddings=True)),
    "tp sp": (Strategy(tp=4, sp=True, dp_shard=2, overlap_tp=True), DENSE),
    "pp": (Strategy(pp=4, num_microbatches=8), DENSE),
    "pp, fewer micro-batches than stages": (Strategy(pp=4, num_microbatches=2), DENSE),
    "interleaved": (INTERLEAVED, DENSE),
    "interleaved, larger groups": (replace(INTERLEAVED, num_microbatches=12, microbatch_group_size=6), DENSE),
    "interleaved, three chunks": (replace(INTERLEAVED, vpp=3), GQA),
    "dualpipev": (DUALPIPEV, DENSE),
    "dualpipev with experts": (replace(DUALPIPEV, ep=2, dp_shard=2, overlap_ep=True), MLA),
    "ring": (Strategy(cp=4, cp_kind="ring", dp_shard=2), DENSE),
    "all to all": (Strategy(cp=4, cp_kind="all_to_all", dp_shard=2), make_model(8, num_kv_heads=16)),
    "tp cp pp dp": (Strategy(tp=2, sp=True, cp=2, cp_kind="ring", pp=2, dp_shard=2, num_microbatches=4), GQA),
    "zero 1 replicated": (Strategy(dp_replicate=2, dp_shard=4), DENSE),
    "zero 2": (Strategy(dp_shard=8, zero_stage=2), DENSE),
    "zero 3": (Strategy(dp_shard=8, zero_stage=3), DENSE),
    "recompute": (Strategy(recompute="selective", recompute_modules=("attention_core", "norm", "activation")), DENSE),
    "expert recompute": (
        Strategy(ep=4, dp_shard=8, recompute="selective", recompute_modules=("norm", "activation", "moe")),
        MOE,
    ),
    "full recompute": (Strategy(recompute="full", dp_shard=2), DENSE),
    "offload": (Strategy(tp=2, pp=2, num_microbatches=4, activation_offload=True, optimizer_offload=True), DENSE),
    "ep etp": (Strategy(tp=2, sp=True, ep=4, etp=2, dp_shard=4), MOE),
    "ep overlap": (replace(INTERLEAVED, ep=2, dp_shard=2, overlap_ep=True, **NO_OVERLAP), MOE),  # type: ignore[arg-type]
    "mla mtp pp": (replace(INTERLEAVED, vpp=3, tp=2, sp=True, ep=8, dp_shard=8), MLA),
    "other axis order": (Strategy(pp=2, dp_shard=4, num_microbatches=4, axis_order="tp-cp-ep-pp-dp"), DENSE),
}
REFUSED: dict[str, tuple[str, str, Strategy, ModelSpec]] = {
    "heads": ("B2", "config", Strategy(tp=3), DENSE),
    "kv heads": ("B2b", "config", Strategy(tp=8, sp=True), GQA),
    "experts over ranks": ("C1", "groups", Strategy(tp=2, sp=True, pp=2, ep=8, etp=2, dp_shard=2), MOE),
    "axis order": (
        "C2",
        "groups",
        Strategy(cp=2, cp_kind="ring", pp=2, dp_shard=2, num_microbatches=4, axis_order="tp-cp-ep-pp-dp"),
        DENSE,
    ),
    "ep of a dense model": ("A21", "config", Strategy(dp_shard=2, ep=2), DENSE),
    "interleaved, too few micro-batches": ("D2", "schedule", replace(INTERLEAVED, num_microbatches=2), DENSE),
    "interleaved, bad rest": ("D2", "schedule", replace(INTERLEAVED, num_microbatches=6), DENSE),
    "experts without sp": ("D3", "config", Strategy(tp=2, ep=2, dp_shard=2), MOE),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_release_accepts_what_we_emit(worker: Worker, name: str) -> None:
    strategy, model = ACCEPTED[name]
    plan = as_spelled(on_ascend(make_plan(strategy, model)), "mindspeed")
    assert TABLE.violations(rule_input(plan)) == []
    assert_accepted(ask(worker, plan), plan)


@pytest.mark.parametrize("name", REFUSED)
def test_our_rules_stop_at_the_same_place(worker: Worker, name: str) -> None:
    rule, stage, strategy, model = REFUSED[name]
    plan = on_ascend(make_plan(strategy, model))
    assert f"mindspeed.{rule}" in {finding.rule for finding in TABLE.violations(rule_input(plan))}
    verdict = ask(worker, plan)
    assert not verdict.accepted
    assert verdict.stage == stage, verdict


@pytest.mark.parametrize("name", sorted(builtin_models()))
def test_models_that_ship(worker: Worker, name: str) -> None:
    model = builtin_model(name)
    experts = any(kind.moe for kind in model.layer_kinds)
    strategy = Strategy(pp=2, dp_shard=4, ep=4 if experts else 1, num_microbatches=4)
    workload = Workload(global_batch_size=16, sequence_length=min(model.max_sequence_length, 4096))
    plan = make_plan(strategy, model, ascend_cluster(8), workload)
    findings = TABLE.violations(rule_input(plan))
    if findings:
        assert {finding.rule.removeprefix("mindspeed.")[0] for finding in findings} == {"M"}
        return
    assert_accepted(ask(worker, plan), plan)


@pytest.mark.parametrize(
    ("layers", "strategy"),
    [
        ((1, 3, 3, 1), Strategy(pp=4, num_microbatches=8)),
        ((0, 4, 4, 0), Strategy(pp=4, num_microbatches=8)),
        ((2, 2, 2, 0, 0, 0, 1, 1), INTERLEAVED),
    ],
)
def test_uneven_stages(worker: Worker, layers: tuple[int, ...], strategy: Strategy) -> None:
    plan = on_ascend(make_plan(strategy, DENSE, layers_per_chunk=layers))
    assert TABLE.violations(rule_input(plan)) == []
    assert_accepted(ask(worker, plan), plan)


def test_the_world_may_be_large(worker: Worker) -> None:
    strategy = replace(INTERLEAVED, tp=4, sp=True, pp=8, microbatch_group_size=8, ep=16, dp_shard=32)
    strategy = replace(strategy, num_microbatches=16, vpp=3)
    plan = on_ascend(make_plan(strategy, make_moe_model(24, shared=512)))
    assert_accepted(ask(worker, plan), plan)


@pytest.mark.parametrize(
    ("extra", "stage", "words"),
    [
        ("--overlap-moe-expert-parallel-comm\n", "flags", "unknown flags"),
        ("--use-megatron-fsdp\n", "flags", "unknown flags"),
        ("--recompute-modules gdn_norm_out\n--recompute-granularity selective\n", "config", "gdn_norm_out"),
        ("--use-fused-rmsnorm\n", "", "given twice"),
    ],
)
def test_arguments_of_other_releases_are_refused(worker: Worker, extra: str, stage: str, words: str) -> None:
    plan = on_ascend(make_plan())
    if not stage:
        with pytest.raises(Exception, match=words):
            ask(worker, plan, extra)
        return
    verdict = ask(worker, plan, extra)
    assert not verdict.accepted
    assert verdict.stage == stage
    assert words in verdict.message


def test_a_checked_folder_shows_the_verdict(worker: Worker, tmp_path: Path) -> None:
    folder = write_emission(emit(on_ascend(make_plan(DUALPIPEV)), "ascendjob"), tmp_path / "out")
    with Checker([(validator("mindspeed"), "core_v0.12.1")]) as checker:
        report = checker.check(read_folder(folder))
    assert report.ok, report
    (verdict,) = [verdict for verdict in report.verdicts if verdict.validator == "mindspeed"]
    assert verdict.facts["layers_per_chunk"] == [2, 2, 2, 2]


def test_random_plans_that_we_emit_are_accepted(worker: Worker) -> None:
    outcomes: Counter[str] = Counter()

    @given(plans(("1f1b", "interleaved", "dualpipev"), one_setting=True))
    @settings(max_examples=420)
    def check(wanted: Plan) -> None:
        try:
            emission = emit(as_spelled(on_ascend(in_bf16_with_adam(wanted)), "mindspeed"), "torchrun")
        except BackEndRefused:
            outcomes["refused"] += 1
            return
        files = emission.files
        assert_accepted(
            worker.ask(question(files["mindspeed.args"], files["data.args"], files["launch.sh"])), emission.plan
        )
        outcomes["accepted"] += 1

    check()
    assert outcomes["accepted"] >= 40, outcomes


@pytest.mark.parametrize(
    ("model", "cluster", "devices"),
    [("llama-3.1-8b", "ascend-910b-8", 24), ("mixtral-8x7b", "ascend-910c", 32), ("deepseek-v2", "ascend-910b-8", 192)],
)
def test_plans_of_the_space_are_accepted(worker: Worker, model: str, cluster: str, devices: int) -> None:
    found = list(plans_of_the_space(asked_of(model, cluster, devices), "mindspeed", seed=2, wanted=10))
    assert len(found) >= 5
    for plan in found:
        assert_accepted(ask(worker, plan), plan)
