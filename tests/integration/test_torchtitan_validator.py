"""The real torchtitan releases agree with our rules: random configurations, legal and illegal, and emitted ones."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from planner.backends.checking.emitted import read_folder
from planner.backends.checking.worker import Worker
from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.report import Checker
from planner.backends.rules.rule import rule_input
from planner.backends.torchtitan.fields import known_fields
from planner.backends.torchtitan.read import read_back
from planner.backends.torchtitan.space import violations
from planner.backends.torchtitan.validator import VALIDATOR, request
from planner.backends.torchtitan.values import parallelism
from planner.backends.torchtitan.version import TORCHTITAN_VERSION, VERSIONS
from planner.backends.torchtitan.write import violations_for
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_model, make_plan
from tests.round_trip import as_spelled
from tests.torchtitan_cases import (
    CHECKED,
    ask_every_stage,
    deepseek_like,
    files_of,
    llama_like,
    question,
    qwen_like,
    random_plan,
)
from tests.validators import SharedWorkers, worker_or_skip

emit = emitter("torchtitan")

pytestmark = pytest.mark.slow
NUM_LOOPED = 60
"""Of which the rules leave a quarter to a third; 200 of each schedule and release were run once by hand."""
NUM_RANDOM = 75
"""For each of the two random tests; thousands were run once by hand."""


@pytest.fixture(scope="module")
def torchtitan(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("torchtitan")


@pytest.fixture(scope="module", params=VERSIONS)
def release(request: pytest.FixtureRequest, shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("torchtitan", request.param)


def in_words(plan: Plan, version: str = TORCHTITAN_VERSION) -> Plan:
    """The plan as one of torchtitan's."""
    return as_spelled(plan, f"torchtitan=={version}")


def test_torchtitan_refuses_what_the_rules_refuse_and_nothing_else(torchtitan: Worker) -> None:
    verdicts: Counter[str] = Counter()
    for seed in range(NUM_RANDOM):
        plan = random_plan(random.Random(seed))
        found = {finding.rule for finding in violations(rule_input(plan))}
        answer = ask_every_stage(torchtitan, plan)
        story = (seed, found, answer.stage, answer.message)
        if answer.accepted:
            # What torchtitan swallows here, and we refuse, are the rules that say "not checked".
            assert not found & CHECKED, story
        else:
            assert found, story
        verdicts[answer.stage] += 1
    assert verdicts["ok"] >= NUM_RANDOM // 4, verdicts
    assert len(verdicts) >= 4, verdicts


@pytest.mark.parametrize("schedule", ["looped_bfs", "interleaved"])
def test_the_looped_schedules_are_taken_and_refused_as_the_rules_say(schedule: ScheduleName, release: Worker) -> None:
    verdicts: Counter[str] = Counter()
    for seed in range(NUM_LOOPED):
        plan = in_words(random_plan(random.Random(20_000 + seed), schedule), release.version)
        if violations_for(plan, release.version) or plan.chosen().schedule != schedule:
            verdicts["left out"] += 1
            continue
        emission = emit(plan, "torchrun", release.version)
        strategy, layout = read_back(emission.files)
        assert (strategy, layout) == (plan.chosen(), layout_of(plan))
        answer = release.ask(question(emission.files, strategy.world_size, build=True))
        assert answer.accepted, (seed, answer.stage, answer.message)
        assert answer.facts["stages"] == [[chunk.chunk for chunk in stage.chunks] for stage in plan.stages]
        verdicts["accepted"] += 1
    assert verdicts["accepted"] >= 6, verdicts


def test_every_emitted_configuration_is_accepted_and_built(release: Worker) -> None:
    accepted = 0
    for seed in range(10_000, 10_000 + NUM_RANDOM):
        plan = in_words(random_plan(random.Random(seed)), release.version)
        if violations_for(plan, release.version):
            continue
        emission = emit(plan, "torchrun", release.version)
        answer = release.ask(question(emission.files, plan.chosen().world_size, build=True))
        assert answer.accepted, (seed, answer.stage, answer.message)
        s = plan.chosen()
        sizes = {name: answer.facts["sizes"][name] for name in ("tp", "cp", "pp")}
        assert sizes == {"tp": s.tp, "cp": s.cp, "pp": s.pp}
        accepted += 1
    assert accepted >= 10


BASE = Strategy(tp=2, sp=True, pp=2, dp_shard=2, num_microbatches=4, overlap_grad_reduce=False)
SWALLOWED = {
    "P2": (replace(BASE, schedule="gpipe", vpp=2), llama_like()),
    "T2": (replace(BASE, tp=4, dp_shard=1), llama_like(width=514)),
    "E1": (replace(BASE, pp=1, ep=4, dp_shard=4, zero_stage=3), qwen_like(experts=6)),
    "C3": (replace(BASE, pp=1, tp=8, sp=False, ep=2, zero_stage=3), deepseek_like()),
}


@pytest.mark.parametrize("rule", SWALLOWED)
def test_we_refuse_what_torchtitan_swallows(rule: str, torchtitan: Worker) -> None:
    strategy, model = SWALLOWED[rule]
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=1020)
    plan = make_plan(strategy, model, workload=workload)
    found = {finding.rule for finding in violations(rule_input(plan))}
    assert f"torchtitan.{rule}" in found
    answer = torchtitan.ask(question(files_of(plan), strategy.world_size, build=True))
    assert answer.accepted, answer.message


def test_the_stages_are_where_the_plan_puts_them(release: Worker) -> None:
    named: tuple[tuple[ScheduleName, int], ...] = (
        ("1f1b", 1),
        ("gpipe", 1),
        ("interleaved", 2),
        ("looped_bfs", 2),
    )
    for schedule, vpp in named:
        strategy = replace(
            BASE, schedule=schedule, vpp=vpp, microbatch_group_size=2 if schedule == "interleaved" else 0
        )
        plan = in_words(make_plan(strategy), release.version)
        files = emit(plan, "torchrun", release.version).files
        answer = release.ask(question(files, strategy.world_size))
        assert answer.accepted, answer.message
        assert answer.facts["stages"] == [[chunk.chunk for chunk in stage.chunks] for stage in plan.stages]


def test_the_tables_of_fields_are_those_of_the_release(release: Worker) -> None:
    theirs = release.ask({"tables": True}).facts
    for section, names in known_fields(release.version).items():
        assert set(names) == set(theirs[section]), section


def test_every_written_field_exists(release: Worker) -> None:
    written = parallelism(make_plan(BASE), release.version)
    assert set(written) <= set(known_fields(release.version)["parallelism"])


def test_fp8_is_built_with_torchao(torchtitan: Worker) -> None:
    strategy = Strategy(tp=2, sp=True, dp_shard=2, num_microbatches=2, zero_stage=3)
    workload = Workload(global_batch_size=4, sequence_length=4096, precision="fp8")
    files = emit(make_plan(strategy, workload=workload), "torchrun").files
    assert 'FLOAT8_RECIPE = "rowwise"' in files["titan_plan.py"]
    answer = torchtitan.ask(question(files, 4, build=True))
    assert answer.accepted, answer.message


@pytest.mark.parametrize(
    ("old", "new", "stage"),
    [
        ('"tensor_parallel_degree": 2', '"tensor_parallel_degree": 3', "degrees"),
        ('"seq_len": 4096', '"seq_len": 4097', "trainer"),
        ('"global_batch_size": 8', '"global_batch_size": 9', "trainer"),
        ('"disable_cuda_graphs": True', '"disable_cuda_graphs": False', "parse"),
        ('"spmd_backend": ', '"spmd_back_end": ', "parse"),
        ('"pipeline_parallel_schedule": "1F1B"', '"pipeline_parallel_schedule": "2F2B"', "pipeline"),
        ('"seq_len": 4096', '"seq_len": 16384', "model"),
    ],
)
def test_torchtitan_says_where_an_edited_file_breaks(old: str, new: str, stage: str, torchtitan: Worker) -> None:
    files = dict(emit(in_words(make_plan(BASE)), "torchrun").files)
    assert old in files["titan_plan.py"]
    files["titan_plan.py"] = files["titan_plan.py"].replace(old, new)
    answer = torchtitan.ask(question(files, 8))
    assert (answer.accepted, answer.stage) == (False, stage), answer.message
    # The process answers the next one as if nothing had been.
    assert torchtitan.ask(question(emit(make_plan(BASE), "torchrun").files, 8)).accepted


def test_check_asks_torchtitan_about_a_folder_and_never_runs_an_edited_one(tmp_path: Path) -> None:
    worker_or_skip("torchtitan").close()
    folder = write_emission(emit(in_words(make_plan(BASE, make_model())), "slurm"), tmp_path / "run")
    with Checker([(VALIDATOR, VERSIONS[0])]) as checker:
        report = checker.check(read_folder(folder))
        assert report.findings == ()
        assert (report.verdicts[0].validator, report.verdicts[0].accepted) == ("torchtitan", True)
        trap = tmp_path / "executed"
        module = folder / "titan_plan.py"
        module.write_text(module.read_text(encoding="utf-8") + f"\nopen({str(trap)!r}, 'w')\n", encoding="utf-8")
        edited = checker.check(read_folder(folder))
    assert not edited.ok
    assert "torchtitan" not in {verdict.validator for verdict in edited.verdicts}
    assert "were edited" in {each.validator: each.reason for each in edited.not_asked}["torchtitan"]
    assert not trap.exists()


def test_a_request_is_made_of_the_files(tmp_path: Path) -> None:
    emission = emit(in_words(make_plan(BASE)), "torchrun")
    asked = request(read_folder(write_emission(emission, tmp_path / "run")))
    assert asked["world_size"] == 8
    assert asked["arguments"] == ["--module", "titan_plan", "--config", "plan"]
    assert set(asked["files"]) == {"titan_plan.py"}
    assert read_back(emission.files)[0].world_size == 8


def published_deepseek(positions: int) -> ModelSpec:
    """Small layers with the experts and positions that the published model is known by."""
    return deepseek_like(experts=256).model_copy(update={"max_sequence_length": positions})


@pytest.mark.parametrize(("positions", "stretched"), [(163_840, True), (8_192, False)])
def test_routers_and_attention_multiply_as_in_the_published_model(
    positions: int, stretched: bool, release: Worker
) -> None:
    plan = make_plan(
        Strategy(dp_shard=8, zero_stage=2), published_deepseek(positions), backend="torchtitan", release=release.version
    )
    verdict = release.ask(question(emit(plan, "torchrun", release.version).files, 8, build=True))
    assert verdict.accepted, verdict
    plain = 48**-0.5
    # 0.2.2 scales by the sequence that it trains on, which the 4,096 positions before the stretch hold.
    factor = (0.1 * math.log(40) + 1) ** 2 if stretched and release.version == TORCHTITAN_VERSION else 1.0
    recipe = verdict.facts["recipe"]
    assert (recipe["route_scale"], recipe["route_norm"]) == ([2.5], [True])
    assert recipe["softmax_scale"] == [pytest.approx(plain * factor)]
    assert recipe["load_balance_coeff"] == [1e-3]


def test_llama_3_1_is_built_and_stretched(release: Worker) -> None:
    wanted = {"rotary_base": 500_000.0, "max_sequence_length": 131_072}
    for model, factor in ((llama_like(), None), (llama_like().model_copy(update=wanted), 8.0)):
        plan = make_plan(Strategy(dp_shard=8, zero_stage=2), model, backend="torchtitan", release=release.version)
        files = emit(plan, "torchrun", release.version).files
        name = "titan_plan.py" if "titan_plan.py" in files else "titan_model.py"
        assert f'"rope_scaling_factor": {factor},' in files[name]
        verdict = release.ask(question(files, 8, build=True))
        assert verdict.accepted, verdict
        assert verdict.facts["recipe"].get("llama_factor", []) == ([factor] if factor else [])
        other = files[name].replace('"rope_scaling_factor"', '"rope_scaling"', 1)
        assert not release.ask(question({**files, name: other}, 8, build=True)).accepted
