"""Diagnoses of runs that were really executed with a fault each, of logs with other flags, and of public traces."""

from __future__ import annotations

import base64
import json
import threading
from functools import cache
from pathlib import Path

import pytest

from api.solving import child
from api.solving.watch import Watch
from planner.answers.diagnose.axes import PlanAxes
from planner.answers.diagnose.diagnosis import diagnose
from planner.answers.diagnose.document import Diagnosis
from planner.errors import DocumentInvalid
from planner.operations.diagnosis import DIAGNOSIS, DiagnosisRequest, RunFile
from planner.operations.operation import Session
from planner.operations.plan_reference import full_document
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.importers.kineto.activities import Activity
from profiles.importers.kineto.collectives import GroupKey
from profiles.importing.source_file import SourceFile
from tests.command_line import REPOSITORY, run_here
from tests.plan_factory import make_cluster, make_model, make_moe_model, make_plan
from tests.recorded_runs.plans import run_plan
from tests.recorded_runs.record import FOLDER, RUNS
from tests.sampling import drawn
from tests.training_logs import MEGATRON, megatron_log

PUBLIC = REPOSITORY.parent / "shared" / "samples" / "torch"
FOUND = {
    "experts-slow-rank": ("slow-rank", "Rank 1 takes"),
    "experts-uneven": ("uneven-experts", "rank 0 get"),
    "replicas-no-overlap": ("missing-overlap", "dp communication"),
}
"""What is found in a recorded run, and nothing beside it."""
LOGGED = Strategy(
    tp=4,
    sp=True,
    pp=2,
    dp_shard=2,
    micro_batch_size=2,
    num_microbatches=32,
    recompute="selective",
    recompute_modules=("attention_core",),
)
"""What ``megatron_log`` states."""


@cache
def of_recording(name: str) -> Diagnosis:
    return diagnose(run_plan(experts=name.startswith("experts")), [SourceFile(FOLDER / name)])


@cache
def plan_of_log() -> Plan:
    problem = Problem(
        model=make_model(32),
        cluster=make_cluster(16),
        workload=MEGATRON,
        constraints=Constraints(backends=("megatron",)),
    )
    return estimate(problem, LOGGED)


def of_log(folder: Path, text: str, plan: Plan | None = None) -> Diagnosis:
    path = folder / "train.log"
    path.write_text(text, encoding="utf-8")
    return diagnose(plan or plan_of_log(), [SourceFile(path)])


def log_of_plan(**changes: object) -> str:
    """The log of a run of ``plan_of_log``, with some arguments changed."""
    return megatron_log({"hidden_size": 1024, "ffn_hidden_size": 4096, "num_attention_heads": 16, **changes})


@pytest.mark.parametrize("name", drawn(list(RUNS), 2))
def test_the_fault_of_a_recorded_run_is_found_and_nothing_else(name: str) -> None:
    found = of_recording(name)
    assert found.same_run
    assert found.step is not None
    assert found.step.num_steps == 4
    kinds = [each.kind for each in found.findings]
    if name not in FOUND:
        assert kinds == [], "a run without a fault"
        return
    kind, words = FOUND[name]
    assert kinds == [kind]
    finding = found.findings[0]
    assert words in finding.what
    assert finding.seconds
    assert "rank" in finding.evidence[0]


def test_the_parts_of_a_rank_add_up_to_its_step() -> None:
    found = of_recording("experts-slow-rank")
    total_s = sum(each.measured_s or 0.0 for each in found.terms)
    assert total_s == pytest.approx(sum(each.step_s for each in found.ranks) / len(found.ranks))
    slow, quick = found.ranks[1], found.ranks[0]
    assert slow.waiting_s
    assert (quick.waiting_s or 0.0) > 3 * slow.waiting_s, "who is quick waits"
    # The injected fault: rank 1's chunk takes 1.6 times as long (tests.recorded_runs.record.SLOW).
    assert found.findings[0].seconds == pytest.approx(slow.own_s - quick.own_s, rel=0.15)


def test_overlap_shows_as_hidden_communication() -> None:
    hidden = {
        name: next(each.hidden_s for each in of_recording(name).terms if each.term == "dp")
        for name in ("replicas-clean", "replicas-no-overlap")
    }
    assert (hidden["replicas-clean"] or 0.0) > 0.05
    assert (hidden["replicas-no-overlap"] or 0.0) < 0.001


def test_flags_of_the_log_are_compared_with_the_plan(tmp_path: Path) -> None:
    same = of_log(tmp_path, log_of_plan())
    assert same.same_run
    assert not [each for each in same.findings if each.kind == "changed-flag"]
    flag = {"overlap_grad_reduce": False, "overlap_param_gather": False, "recompute_granularity": "full"}
    changed = of_log(tmp_path, log_of_plan(**flag))
    told = {each.what.split(" ")[0]: each for each in changed.findings if each.kind == "changed-flag"}
    assert set(told) == {"overlap_grad_reduce", "overlap_param_gather", "recompute"}
    assert changed.same_run
    assert (told["recompute"].seconds or 0.0) > 0, "recomputing everything takes longer"
    assert all(each.evidence == ("train.log: its arguments",) for each in told.values())
    assert changed.as_run_step_s is not None
    assert changed.as_run_step_s > changed.predicted_step_s


def test_another_run_is_said_first(tmp_path: Path) -> None:
    found = of_log(tmp_path, log_of_plan(tensor_model_parallel_size=2, global_batch_size=64))
    assert not found.same_run
    assert found.findings[0].kind == "another-run"
    assert found.calibration is None
    assert "tp: 2, the plan has 4" in found.findings[0].what
    assert "dp: 4" in found.findings[0].what
    assert found.as_run_step_s is not None, "the run is predicted as its log says"


def test_the_calibration_makes_the_plan_agree(tmp_path: Path) -> None:
    found = of_log(tmp_path, log_of_plan())
    assert found.step is not None
    assert found.step.median_s == pytest.approx(4.2), "the first reading is start-up"
    assert found.calibration is not None
    assert found.calibrated_step_s is not None
    before, after = abs(found.predicted_step_s - 4.2), abs(found.calibrated_step_s - 4.2)
    assert after < before
    rows = [each for each in found.memory if each.measured_bytes]
    assert [(each.rank, each.stage, each.measured_bytes) for each in rows] == [(0, 0, 40_000 * 2**20)]
    assert any("memory of stage 1" in each for each in found.not_measured)


def iteration_lines(times_ms: list[float]) -> str:
    return "\n".join(
        f" iteration {at + 1:8}/ 500 | consumed samples: {at * 8} | elapsed time per iteration (ms): {time_ms:.1f} |"
        f" global batch size: 8 | lm loss: 2.0 |"
        for at, time_ms in enumerate(times_ms)
    )


@pytest.mark.parametrize(
    ("times_ms", "kind"),
    [
        ([9000.0, *(1000.0 + 2 * (at % 3) for at in range(30))], None),
        ([9000.0, *(1000.0 + 10 * at for at in range(30))], "drift"),
        ([9000.0, *(3000.0 if at % 10 == 5 else 1000.0 for at in range(30))], "slow-steps"),
    ],
)
def test_readings_over_the_run(tmp_path: Path, times_ms: list[float], kind: str | None) -> None:
    plan = make_plan(Strategy(dp_shard=8))
    found = of_log(tmp_path, iteration_lines(times_ms), plan)
    assert [each.kind for each in found.findings] == ([kind] if kind else [])


def test_axes_of_groups() -> None:
    axes = PlanAxes(make_plan(Strategy(tp=2, pp=2, ep=2, dp_shard=4, num_microbatches=4), make_moe_model()))

    def axis(operation: str, *ranks: int) -> str:
        return axes.axis(Activity("communication", operation, 0, 1, 0, GroupKey(ranks, "", len(ranks))))

    assert [axis("all_reduce", 0, 1), axis("all_reduce", 0, 2, 4, 6), axis("send_recv", 0, 8)] == ["tp", "dp", "pp"]
    assert axis("all_to_all", 0, 1) == "ep"
    assert axis("all_reduce", *range(16)) == "other"
    assert axes.axis(Activity("communication", "all_to_all", 0, 1, 0)) == "ep", "only one axis exchanges"
    assert axes.axis(Activity("communication", "all_reduce", 0, 1, 0)) == "other", "tp or dp: nobody knows"


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public samples (../shared/samples) are not here")
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("hta_nccl_data.json.gz", ["host-gaps", "unfused-kernel"]),
        ("tracelens_h100_qwen.json.gz", ["another-device", "unfused-kernel", "host-gaps"]),
        ("hta_cpu_only.pt.trace.json.gz", ["another-run"]),
    ],
)
def test_public_traces(name: str, kinds: list[str]) -> None:
    found = diagnose(make_plan(Strategy(dp_shard=2), cluster=make_cluster(2)), [SourceFile(PUBLIC / name)])
    assert [each.kind for each in found.findings] == kinds
    assert sum(each.measured_s or 0.0 for each in found.terms) == pytest.approx(
        sum(each.step_s for each in found.ranks) / len(found.ranks)
    )


def test_files_that_say_nothing_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of use\n", encoding="utf-8")
    with pytest.raises(DocumentInvalid, match=r"no file tells the time or the memory of a step: notes\.txt") as caught:
        diagnose(make_plan(), [SourceFile(tmp_path / "notes.txt")])
    assert caught.value.hint is not None
    assert "profiler.step()" in caught.value.hint


def test_the_operation_takes_texts_and_bytes() -> None:
    trace = base64.b64encode((FOLDER / "replicas-no-overlap" / "rank1.json.gz").read_bytes())
    lines = iteration_lines([3000.0, 1400.0, 1380.0])
    files = ({"name": "train.log", "text": lines}, {"name": "rank1.json.gz", "base64": trace})
    asked = DiagnosisRequest.model_validate({"plan": "it", "files": files})
    found = DIAGNOSIS.work(Session(lambda _: run_plan(experts=False)), asked)
    assert [(each.name, each.read_as) for each in found.files] == [
        ("train.log", "megatron-log"),
        ("rank1.json.gz", "kineto"),
    ]
    assert found.step is not None
    assert found.step.source == "train.log", "a profiler slows the run"
    assert [each.rank for each in found.ranks] == [1]
    with pytest.raises(ValueError, match="either text or base64"):
        RunFile(name="train.log")


def test_a_service_reads_no_files_of_its_own() -> None:
    with pytest.raises(ValueError, match="paths"):
        DIAGNOSIS.request.model_validate({"plan": "it", "paths": ["/etc/hostname"]})
    assert "paths" not in DIAGNOSIS.request.model_fields


def test_the_command_reads_files_where_they_lie(tmp_path: Path) -> None:
    plan, factors = tmp_path / "plan.json", tmp_path / "factors.json"
    plan.write_text(json.dumps(full_document(plan_of_log())), encoding="utf-8")
    log = tmp_path / "train.log"
    log.write_text(log_of_plan(overlap_grad_reduce=False, overlap_param_gather=False), encoding="utf-8")
    done = run_here("diagnose", str(plan), str(log), "--calibration-out", str(factors))
    assert done.exit_code == 0, done.stderr
    assert "overlap_grad_reduce is false" in done.stdout
    assert "Not measured" in done.stdout
    assert json.loads(factors.read_text(encoding="utf-8"))["device"] == "test-device"


def test_a_service_answers_in_a_computing_process() -> None:
    trace = base64.b64encode((FOLDER / "replicas-no-overlap" / "rank0.json.gz").read_bytes()).decode()
    payload = {
        "plan": run_plan(experts=False).model_dump_json(),
        "files": [{"name": "rank0.json.gz", "base64": trace}],
    }
    outcome, content, _ = child.answer("diagnosis", payload, Watch(60.0, threading.Event(), lambda _: None))
    assert outcome == "done"
    assert [each["kind"] for each in json.loads(content)["findings"]] == ["missing-overlap"]
