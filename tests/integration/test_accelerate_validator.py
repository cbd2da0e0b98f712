"""The real Accelerate takes what we emit, and refuses what our rules refuse."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends.accelerate.config import CONFIG_FILE, accelerate_config, config_text, environment
from planner.backends.accelerate.read import read_back
from planner.backends.accelerate.space import violations
from planner.backends.accelerate.training_document import TRAINING_FILE, training_document
from planner.backends.accelerate.validator import VALIDATOR, request
from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.accelerate.way import way
from planner.backends.checking.emitted import EmittedFolder, read_folder
from planner.backends.checking.worker import Worker
from planner.backends.deepspeed.training_document import training_text
from planner.backends.emission.write import write_emission
from planner.backends.folders.report import Checker
from planner.backends.launch.torchrun import LAUNCH_SCRIPT
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused, DocumentInvalid
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_model, make_plan
from tests.property.test_accelerate_round_trip import near_accelerate_plans
from tests.round_trip import as_spelled
from tests.validators import SharedWorkers

emit = emitter("accelerate")

pytestmark = pytest.mark.slow

SHARDED = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4)
ENFORCED = {"accelerate.A4", "accelerate.A5"}
"""Rules of ``ParallelismConfig`` itself; A6 is the launcher's, for its flags."""


@pytest.fixture(scope="module")
def accelerate(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("accelerate")


def folder(path: Path, s: Strategy = SHARDED) -> Path:
    plan = make_plan(
        s,
        make_model(num_kv_heads=4),
        make_cluster(s.world_size, devices_per_node=min(8, s.world_size)),
        workload=Workload(global_batch_size=s.global_batch_size, sequence_length=4096),
        backend="accelerate",
        release=ACCELERATE_VERSION,
    )
    plan = as_spelled(plan, "accelerate")
    return write_emission(emit(plan, "torchrun"), path)


WAYS: dict[str, Strategy] = {
    "FSDP2": SHARDED,
    "ZeRO-2": replace(SHARDED, zero_stage=2),
    "hybrid": replace(SHARDED, dp_replicate=2),
    "cp": replace(SHARDED, cp=2, cp_kind="ring"),
    "cp, two kinds of dp, many nodes": replace(SHARDED, cp=2, cp_kind="ring", dp_replicate=4, dp_shard=32),
    "DDP": replace(SHARDED, zero_stage=0),
    "one process": replace(SHARDED, zero_stage=0, dp_shard=1),
    "DeepSpeed ZeRO-1": replace(SHARDED, zero_stage=1, overlap_grad_reduce=False, overlap_param_gather=False),
    "DeepSpeed offload": replace(SHARDED, zero_stage=3, optimizer_offload=True),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_is_accepted_and_understood_as_planned(name: str, tmp_path: Path, accelerate: Worker) -> None:
    s = WAYS[name]
    path = folder(tmp_path / "out", s)
    verdict = accelerate.ask(request(read_folder(path)))
    assert verdict.accepted, verdict
    facts = verdict.facts
    assert facts["num_processes"] == s.world_size
    emitted = read_back(read_folder(path).files)[0]
    assert facts["distributed_type"] == way(emitted)
    if way(emitted) == "FSDP":
        assert facts["fsdp_version"] == 2
        assert facts["reshard_after_forward"] == (emitted.zero_stage == 3)
        degrees = {"dp_replicate": s.dp_replicate, "dp_shard": s.dp_shard, "cp": s.cp}
        assert facts["mesh"] == {axis: size for axis, size in degrees.items() if size > 1}
    if way(emitted) == "DEEPSPEED":
        assert facts["zero_stage"] == emitted.zero_stage


def unruled(plan: Plan) -> EmittedFolder:
    """The files of a plan, whether our rules take it or not."""
    config = accelerate_config(plan, 1)
    files = {CONFIG_FILE: config_text(config), TRAINING_FILE: training_text(training_document(plan))}
    return EmittedFolder(Path(), {"environment": environment(config)}, files)


def test_random_plans_get_accelerates_verdict(accelerate: Worker) -> None:
    outcomes: Counter[str] = Counter()

    @given(near_accelerate_plans(), st.booleans())
    @settings(max_examples=450, deadline=None)
    def check(plan: Plan, ruled: bool) -> None:
        plan = as_spelled(plan, "accelerate")
        if ruled:
            try:
                emission = emit(plan, "torchrun")
            except BackEndRefused:
                return
            manifest = {"environment": emission.written.environment}
            verdict = accelerate.ask(request(EmittedFolder(Path(), manifest, emission.files)))
            assert verdict.accepted, (verdict, plan.chosen())
            outcomes["emitted"] += 1
            return
        if way(plan.chosen()) == "DEEPSPEED":
            return
        verdict = accelerate.ask(request(unruled(plan)))
        found = {finding.rule for finding in violations(rule_input(plan))}
        outcomes["accepted" if verdict.accepted else "refused"] += 1
        if verdict.accepted:
            assert not found & ENFORCED, (verdict, plan.chosen(), found)
        else:
            assert found, (verdict, plan.chosen())

    check()
    assert outcomes["emitted"] >= 20, outcomes
    assert outcomes["accepted"] >= 10, outcomes
    assert outcomes["refused"] >= 3, outcomes


EDITS: dict[str, tuple[Strategy, str, str, str, str]] = {
    "unknown key": (SHARDED, CONFIG_FILE, "debug: false", "debug: false\nbogus: 1", "config"),
    "more processes": (SHARDED, CONFIG_FILE, "num_processes: 4", "num_processes: 8", "mesh"),
    "other shards": (SHARDED, CONFIG_FILE, "dp_shard_size: 4", "dp_shard_size: 2", "environment"),
    "other ZeRO": (SHARDED, LAUNCH_SCRIPT, "RESHARD_AFTER_FORWARD=true", "RESHARD_AFTER_FORWARD=false", "environment"),
    "no FSDP in the launcher": (SHARDED, LAUNCH_SCRIPT, "export ACCELERATE_USE_FSDP=true", "", "environment"),
    "precision twice": (
        replace(SHARDED, zero_stage=1, overlap_grad_reduce=False, overlap_param_gather=False),
        CONFIG_FILE,
        "debug: false",
        "debug: false\nmixed_precision: bf16",
        "environment",
    ),
    "other mesh": (SHARDED, TRAINING_FILE, '"data_shard": 4', '"data_shard": 8', "mesh"),
    "broken": (SHARDED, TRAINING_FILE, "{", "", "files"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_folder_is_refused(name: str, tmp_path: Path, accelerate: Worker) -> None:
    s, file, old, new, stage = EDITS[name]
    path = folder(tmp_path / "out", s)
    text = (path / file).read_text()
    assert old in text
    (path / file).write_text(text.replace(old, new, 1))
    verdict = accelerate.ask(request(read_folder(path)))
    assert (verdict.accepted, verdict.stage) == (False, stage), verdict
    with pytest.raises(DocumentInvalid):
        read_back(read_folder(path).files)


def test_nested_keys_that_accelerate_swallows_are_ours_to_refuse(tmp_path: Path, accelerate: Worker) -> None:
    path = folder(tmp_path / "out")
    text = (path / CONFIG_FILE).read_text()
    (path / CONFIG_FILE).write_text(text.replace("fsdp_config:\n", "fsdp_config:\n  fsdp_reshard_after: false\n"))
    assert accelerate.ask(request(read_folder(path))).accepted
    with pytest.raises(DocumentInvalid, match="fsdp_reshard_after does nothing"):
        read_back(read_folder(path).files)


def test_all_tiers_agree_about_an_emitted_folder(tmp_path: Path, accelerate: Worker) -> None:
    path = folder(tmp_path / "out")
    with Checker([(VALIDATOR, accelerate.version)]) as checker:
        report = checker.check(read_folder(path))
    assert report.ok, report
    assert "accelerate" in {verdict.validator for verdict in report.verdicts}


def test_the_config_is_what_a_yaml_reader_of_the_old_rules_reads(tmp_path: Path) -> None:
    """``distributed_type: NO`` would be a truth value, as Accelerate's reader follows YAML 1.1."""
    text = (folder(tmp_path / "out", replace(SHARDED, zero_stage=0, dp_shard=1)) / CONFIG_FILE).read_text()
    assert json.dumps("NO") in text
