"""Our DeepSpeed rules give DeepSpeed's verdict: random plans, every built-in model, folders edited by hand."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends.checking.emitted import read_folder
from planner.backends.checking.worker import Worker
from planner.backends.deepspeed.config import CONFIG_FILE, ds_config
from planner.backends.deepspeed.config_keys import config_findings
from planner.backends.deepspeed.model_config import model_config, why_not_buildable
from planner.backends.deepspeed.space import TABLE
from planner.backends.deepspeed.training_document import TRAINING_FILE, training_document, training_text
from planner.backends.deepspeed.validator import VALIDATOR, request
from planner.backends.emission.write import write_emission
from planner.backends.folders.report import Checker
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused
from planner.model.builtin import builtin_model, builtin_models
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from profiles.errors import DocumentInvalid
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_model, make_plan
from tests.plan_strategies import plans
from tests.round_trip import as_spelled, plans_of_the_space, question
from tests.sampling import examples
from tests.validators import SharedWorkers

emit = emitter("deepspeed")

pytestmark = pytest.mark.slow

DATA = Strategy(dp_shard=4, num_microbatches=4, overlap_grad_reduce=False, overlap_param_gather=False)
EXAMPLES = examples(200, 80)
ENFORCED = {f"deepspeed.{rule}" for rule in ("C1", "C2", "E1", "E2", "E3", "E4", "E5", "E6", "E11", "E12", "E15", "P8")}
"""Rules that DeepSpeed itself enforces before the first step; the others say that it runs something else in silence,
fails later, or cannot be told."""


@pytest.fixture(scope="module")
def deepspeed(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("deepspeed")


def asked(plan: Plan) -> dict[str, Any]:
    """What the validator would read of a plan's files, whether our rules take it or not."""
    return {
        "config": json.dumps(ds_config(plan)),
        "training": training_text(training_document(plan)),
        "model": json.dumps(model_config(plan.problem.model)),
        "world_size": plan.chosen().world_size,
    }


@st.composite
def sayable_plans(draw: st.DrawFn) -> Plan:
    """Random plans that the files can hold, broken where DeepSpeed has a rule of its own."""
    plan = as_spelled(draw(plans(("1f1b", "dualpipev"), one_setting=True)), "deepspeed")
    s = replace(plan.chosen(), sp=False, etp=1, activation_offload=False, recompute="none", recompute_modules=())
    s = replace(s, zero_stage=draw(st.integers(0, 3)), dp_replicate=1, dp_shard=s.dp)
    if draw(st.integers(0, 3)):  # mostly one model axis, as DeepSpeed wants it
        axes = {"tp": 1, "cp": 1, "ep": 1, "pp": 1}
        keep = draw(st.sampled_from(sorted(axes)))
        axes[keep] = getattr(s, keep)
        if axes["pp"] == 1:
            s = replace(s, schedule="1f1b", vpp=1)
        s = replace(
            s,
            tp=axes["tp"],
            cp=axes["cp"],
            ep=axes["ep"],
            pp=axes["pp"],
            cp_kind="all_to_all" if axes["cp"] > 1 else "none",
        )
    s = replace(s, num_microbatches=draw(st.sampled_from([1, 2, 4, 8, 12])))
    samples = s.global_batch_size + draw(st.sampled_from([0, 0, 0, 0, 1]))
    workload = plan.problem.workload.model_copy(update={"global_batch_size": samples, "precision": "bf16"})
    cluster = make_cluster(s.world_size, devices_per_node=1)
    layers = plan.problem.model.num_layers
    counts = [layers // s.num_chunks + (index < layers % s.num_chunks) for index in range(s.num_chunks)]
    return make_plan(s, plan.problem.model, cluster, workload, layers_per_chunk=counts)


def compare(plan: Plan, deepspeed: Worker, outcomes: Counter[str]) -> None:
    """One plan; an assertion with both opinions where they differ."""
    try:
        question = asked(plan)
    except DocumentInvalid:  # a model or schedule that the files cannot hold
        outcomes["unsayable"] += 1
        return
    verdict = deepspeed.ask(question)
    found = {finding.rule for finding in TABLE.violations(rule_input(plan))}
    keys = {finding.rule for finding in config_findings(ds_config(plan), plan.chosen().dp)}
    if not verdict.accepted:
        assert found, (verdict, plan.chosen())
        outcomes[f"refused at {verdict.stage}"] += 1
    else:
        assert not found & ENFORCED, (found, verdict, plan.chosen())
        assert not any(rule.startswith("deepspeed.F") for rule in keys), (keys, plan.chosen())
        outcomes["accepted"] += 1


def test_random_plans_get_deepspeeds_verdict(deepspeed: Worker) -> None:
    outcomes: Counter[str] = Counter()

    @given(sayable_plans())
    @settings(max_examples=EXAMPLES, deadline=None)
    def check(plan: Plan) -> None:
        compare(plan, deepspeed, outcomes)

    check()
    assert outcomes["accepted"] >= 20, outcomes
    assert sum(count for name, count in outcomes.items() if name.startswith("refused")) >= 20, outcomes


def test_every_emitted_plan_of_a_built_in_model_is_accepted(deepspeed: Worker) -> None:
    emitted = 0
    for name in builtin_models():
        model = builtin_model(name)
        if why_not_buildable(model) is not None:
            continue
        for s in (DATA, replace(DATA, zero_stage=3), replace(DATA, pp=2), replace(DATA, ep=2, zero_stage=2)):
            workload = Workload(global_batch_size=s.global_batch_size, sequence_length=1024)
            try:
                plan = emit(make_plan(s, model, workload=workload), "torchrun").plan
            except BackEndRefused:
                continue
            verdict = deepspeed.ask(asked(plan))
            assert verdict.accepted, (name, s, verdict)
            emitted += 1
    assert emitted >= 20


@pytest.mark.parametrize(
    ("model", "cluster", "devices"),
    [("llama-3.1-8b", "dgx-h100", 24), ("llama-2-13b", "dgx-a100-40g", 48), ("mixtral-8x7b", "dgx-a100-80g", 32)],
)
def test_plans_of_the_space_are_accepted(deepspeed: Worker, model: str, cluster: str, devices: int) -> None:
    found = list(plans_of_the_space(question(model, cluster, devices), "deepspeed", seed=2, wanted=10))
    assert len(found) == 10
    for plan in found:
        verdict = deepspeed.ask(asked(plan))
        assert verdict.accepted, (verdict, plan.chosen())


def folder(path: Path, s: Strategy = DATA) -> Path:
    plan = make_plan(s, make_model(num_kv_heads=4), workload=Workload(global_batch_size=16, sequence_length=4096))
    return write_emission(emit(plan, "torchrun"), path)


def edit(path: Path, change: tuple[str, ...], value: object) -> None:
    document = json.loads(path.read_text())
    inner = document
    for key in change[:-1]:
        inner = inner[key]
    inner[change[-1]] = value
    path.write_text(json.dumps(document))


EDITS: dict[str, tuple[Strategy, str, tuple[str, ...], object, str]] = {
    "batch": (DATA, CONFIG_FILE, ("train_batch_size",), 17, "config"),
    "unknown ZeRO key": (DATA, CONFIG_FILE, ("zero_optimization", "stages"), 3, "config"),
    "more ranks than started": (DATA, TRAINING_FILE, ("mesh", "data_shard"), 8, "mesh"),
    "not a mesh": (DATA, TRAINING_FILE, ("mesh",), {"pipe": 1}, "files"),
    "AutoTP undone": (
        replace(DATA, tp=2, dp_shard=2, num_microbatches=8),
        CONFIG_FILE,
        ("tensor_parallel", "autotp_size"),
        4,
        "tensor",
    ),
    "ZeRO-2 with a pipeline": (
        replace(DATA, pp=2, dp_shard=2, num_microbatches=8),
        CONFIG_FILE,
        ("zero_optimization", "stage"),
        2,
        "engine",
    ),
    "gradients without an optimizer for them": (DATA, CONFIG_FILE, ("zero_optimization", "stage"), 0, "engine"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_folder_is_refused_where_deepspeed_would(name: str, tmp_path: Path, deepspeed: Worker) -> None:
    s, file, change, value, stage = EDITS[name]
    path = folder(tmp_path / "out", s)
    assert deepspeed.ask(request(read_folder(path))).accepted
    edit(path / file, change, value)
    verdict = deepspeed.ask(request(read_folder(path)))
    assert (verdict.accepted, verdict.stage) == (False, stage), verdict
    assert verdict.message


def test_a_broken_file_is_an_answer_and_not_a_crash(tmp_path: Path, deepspeed: Worker) -> None:
    path = folder(tmp_path / "out")
    (path / TRAINING_FILE).write_text("{")
    verdict = deepspeed.ask(request(read_folder(path)))
    assert (verdict.accepted, verdict.stage) == (False, "files")


def test_all_tiers_agree_about_an_emitted_folder(tmp_path: Path, deepspeed: Worker) -> None:
    path = folder(tmp_path / "out")
    with Checker([(VALIDATOR, deepspeed.version)]) as checker:
        report = checker.check(read_folder(path))
    assert report.ok
    assert "deepspeed" in {verdict.validator for verdict in report.verdicts}
    assert {verdict.facts.get("engine") for verdict in report.verdicts} >= {"DeepSpeedEngine with BF16_Optimizer"}
