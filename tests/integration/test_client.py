"""The client against the real service on a real socket."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from api.access.api_keys import new_key
from api.client import Client, JobCancelled, JobUnfinished, Patience, ProblemReported, ServiceUnreachable
from api.wire.jobs import JobRecord
from api.wire.questions import EstimateQuestion, PlanQuestion, ThroughputQuestion
from planner.backends.emission.write import changed_files, read_manifest
from planner.errors import Conflict, DocumentInvalid, NotFound
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.listening_service import listening
from tests.running_service import SMALL_MODEL, WORKLOAD, question


@dataclass(frozen=True, slots=True)
class Running:
    database: str
    address: str
    client: Client


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    database = f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"
    with listening(database, MemoryBoard(database)) as address, Client(address) as client:
        yield Running(database, address, client)


@pytest.fixture(scope="module")
def client(running: Running) -> Client:
    return running.client


@pytest.fixture(scope="module")
def plan(client: Client) -> Plan:
    return client.plan(question())


def asked(batch: int) -> PlanQuestion:
    return PlanQuestion(
        model=SMALL_MODEL,
        cluster="dgx-a100-80g",
        devices=8,
        workload=Workload(global_batch_size=batch, sequence_length=2048),
    )


def test_every_form_of_a_question_gets_the_same_plan(client: Client, plan: Plan) -> None:
    assert plan.status == "optimal"
    assert client.plan(PlanQuestion.model_validate(question())) == plan
    # A whole problem: what another program planned here may be asked there.
    assert client.plan(plan.problem) == plan
    assert client.put_request("slurm-4711", question()) == plan
    seen = client.get_request("slurm-4711")
    assert (seen.state, seen.plan_id) == ("answered", plan.plan_id)
    assert client.get_plan(plan.plan_id[:12]) == plan


def test_a_call_that_is_sent_twice_is_one_request(running: Running, client: Client) -> None:
    first = client.plan(asked(24), idempotency_key="night-run")
    assert client.plan(asked(24), idempotency_key="night-run") == first
    with pytest.raises(ProblemReported) as reused:
        client.plan(asked(40), idempotency_key="night-run")
    assert (reused.value.status, reused.value.problem.slug) == (422, "key-reused")
    with open_store(running.database) as store:
        assert len(store.list_plans(problem_id=first.problem.problem_id)) == 1


def test_a_problem_says_what_where_and_how_to_repair_it(client: Client) -> None:
    with pytest.raises(ProblemReported) as wrong:
        client.plan({**question(), "workload": {"global_batch_size": 0, "sequence_length": "long"}, "colour": "red"})
    problem = wrong.value
    assert (problem.status, problem.problem.slug) == (422, "document-invalid")
    assert problem.type.endswith("/document-invalid")
    assert problem.title
    assert {each.pointer for each in problem.errors} == {
        "/colour",
        "/workload/global_batch_size",
        "/workload/sequence_length",
    }
    assert next(each.hint for each in problem.errors if each.pointer == "/colour") == "remove colour"
    with pytest.raises(ProblemReported) as none:
        client.plan(question(constraints={"pins": {"tp": 8, "pp": 8}}))
    assert (none.value.problem.slug, bool(none.value.problem.binding)) == ("no-feasible-plan", True)
    check = client.check_problem({**question(), "cluster": "dgx-h1000"})
    assert (check.ok, [each.pointer for each in check.findings]) == (False, ["/cluster"])
    assert client.check_problem(question()).ok


def test_what_cannot_be_sent_is_refused_here(client: Client) -> None:
    with pytest.raises(DocumentInvalid, match="no JSON"):
        client.plan({**question(), "time_limit_s": float("nan")})
    for name in ("../../livez", "a/b", "", "x" * 200, "ä"):
        with pytest.raises(NotFound):
            client.get_plan(name)


def test_elastic_questions(client: Client, plan: Plan) -> None:
    curve = client.throughput(
        ThroughputQuestion(
            model=SMALL_MODEL,
            cluster="dgx-a100-80g",
            device_counts=(8, 16),
            workload=Workload.model_validate(WORKLOAD),
            price_per_device_hour=2.0,
            budget_s=30,
        )
    )
    assert [(point.num_devices, point.fits) for point in curve.points] == [(8, True), (16, True)]
    assert all(point.cost_per_million_tokens for point in curve.points)
    again = client.replan(plan.plan_id, devices=16)
    assert (again.devices_before, again.devices_after) == (8, 16)
    assert client.get_plan(again.new_plan_id) == again.plan
    one = client.estimate(EstimateQuestion.model_validate({**question(), "strategy": {"tp": 2}}))
    assert one.fits
    assert one.plan.strategy["tp"] == 2


def test_views_of_a_plan(client: Client, plan: Plan) -> None:
    assert client.explanation(plan.plan_id, brief=True).headline
    assert client.why_not(plan.plan_id, "tp=8").sentence
    assert client.timeline(plan.plan_id)["traceEvents"]
    assert client.memory(plan.plan_id).limit_bytes == plan.memory_limit_bytes
    asked_changes = {point.change for point in client.sensitivity(plan.plan_id, (-0.3, 0.3)).points}
    assert {-0.3, 0.3} <= asked_changes
    assert client.diff(plan.plan_id, plan.plan_id).identical


def test_launch_files_reach_a_folder_whole(client: Client, plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    view = client.write_emission(plan.plan_id, folder)
    manifest = read_manifest(folder)
    assert changed_files(folder, manifest) == ()
    assert manifest == view.manifest
    with zipfile.ZipFile(BytesIO(client.emission_zip(plan.plan_id))) as archive:
        names = set(archive.namelist())
        assert all((folder / name).read_bytes() == archive.read(name) for name in names)
    assert names == {*view.files, "manifest.json"}
    client.write_emission(plan.plan_id, folder)
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(Conflict):
        client.write_emission(plan.plan_id, folder)
    with pytest.raises(ProblemReported) as unknown:
        client.emission(plan.plan_id, "nothing")
    assert unknown.value.status == 404


def test_labels_and_pages(client: Client, plan: Plan) -> None:
    for batch in (56, 64, 72):
        client.plan(asked(batch))
    assert client.label("production", plan.plan_id).version == 1
    assert client.get_label("production").plan_id == plan.plan_id
    assert client.get_plan("production") == plan
    small = [each.plan_id for each in client.list_plans(page=2)]
    assert small == [each.plan_id for each in client.list_plans()]
    assert len(small) == len(set(small)) > 3
    found = client.list_plans(problem_id=plan.problem.problem_id)
    assert [each.labels for each in found] == [("production",)]


def test_the_catalogue(client: Client) -> None:
    assert "llama-3.1-8b" in {each["name"] for each in client.models()}
    assert "dgx-h100" in {each["name"] for each in client.clusters()}
    assert client.get_cluster("dgx-h100").builtin
    assert client.get_model("llama-3.1-8b").document["hidden_size"] == 4096
    device = client.devices()[0]["name"]
    assert client.get_device(device)["name"] == device
    assert client.version().version


def test_a_long_search_is_a_job_that_is_waited_for(client: Client) -> None:
    heard: list[str] = []
    jobs: list[str] = []
    found = client.plan(asked(80), as_job=True, started=jobs.append, progress=lambda state: heard.append(state.phase))
    assert found.is_final
    assert len(jobs) == 1
    # How often it was looked at while it ran is chance; what was heard is what it said.
    assert set(heard) <= {"queued", "searching", "running"}
    job = next(iter(client.list_jobs(status="succeeded", page=1)))
    assert job.id == jobs[0]
    assert job.result_plan_id == found.plan_id
    events = list(client.job_events(job.id))
    assert [each.seq for each in events] == list(range(1, len(events) + 1))
    assert [each.seq for each in client.job_events(job.id, after=1)] == [each.seq for each in events[1:]]
    assert list(client.job_events(job.id, after=events[-1].seq)) == []
    assert client.cancel_job(job.id).status == "succeeded"
    with pytest.raises(ProblemReported) as none:
        client.plan(question(constraints={"pins": {"tp": 8, "pp": 4}}), as_job=True)
    assert none.value.problem.slug == "no-feasible-plan"


def test_a_job_that_does_not_start_is_left_and_cancelled(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    with listening(database, MemoryBoard(database, paused=True)) as address, Client(address) as client:
        job = client.submit_plan(asked(88))
        assert isinstance(job, JobRecord)
        with pytest.raises(JobUnfinished) as late:
            client.wait_for_job(job.id, wait_s=0.0)
        assert late.value.job_id == job.id
        assert client.cancel_job(job.id).status == "cancelled"
        with pytest.raises(JobCancelled):
            client.wait_for_job(job.id)
        assert [each.id for each in client.list_jobs(mine=True)] == [job.id]


def test_a_key_opens_and_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    key, record = new_key("test", "plan", 1)
    with open_store(database) as store:
        store.service().add_api_key(record)
    with listening(database, authentication=True) as address:
        with Client(address) as nobody, pytest.raises(ProblemReported) as refused:
            nobody.plan(question())
        assert refused.value.status == 401
        monkeypatch.setenv("MESHWRIGHT_API_KEY", key + "\n")
        with Client(address) as client:
            assert client.version().version
            assert list(client.list_plans()) == []
            assert key.partition(".")[2] not in f"{client!r} {vars(client)!r}"
        with pytest.raises(DocumentInvalid) as wrong:
            Client(address, "mw_two words")
        assert "two words" not in str(wrong.value)


def test_an_event_stream_survives_a_restart_of_the_service(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    board = MemoryBoard(database, paused=True)
    seen: list[Any] = []
    with listening(database, board) as address:
        port = int(address.rpartition(":")[2])
        client = Client(address, patience=Patience(retries=200, longest_wait_s=0.2))
        job = client.submit_plan(asked(96))
        assert isinstance(job, JobRecord)
        events = client.job_events(job.id)
        seen.append(next(events))
    with listening(database, board, port=port):
        board.cancel(job.id)
        seen += events
    client.close()
    assert [(each.seq, each.status) for each in seen] == [(1, "queued"), (2, "cancelled")]


def test_nobody_there_is_one_error(tmp_path: Path) -> None:
    waits: list[float] = []
    with listening(f"sqlite:///{tmp_path / 'plans.db'}") as address:
        pass
    patience = Patience(retries=3, sleep=waits.append)
    with Client(address, patience=patience) as client, pytest.raises(ServiceUnreachable) as gone:
        client.plan(question())
    assert "cannot be reached" in gone.value.what
    assert gone.value.where == address
    assert len(waits) == 3
    assert waits == sorted(waits)


def test_answers_are_plain_json_too(client: Client, plan: Plan) -> None:
    """What a client reads can be kept and read again."""
    assert Plan.model_validate(json.loads(plan.model_dump_json())) == plan


def test_a_target_is_part_of_the_answer_and_no_reason_for_none(client: Client) -> None:
    asked_curve = {
        **{"model": SMALL_MODEL, "cluster": "dgx-a100-80g", "device_counts": [8], "workload": WORKLOAD},
        "budget_s": 60,
    }
    (kept,) = client.throughput(asked_curve).points
    (missed,) = client.throughput({**asked_curve, "constraints": {"min_tokens_per_s": 1e15}}).points
    assert (kept.fits, kept.meets_target) == (True, True)
    assert (missed.fits, missed.meets_target, missed.plan_id) == (True, False, kept.plan_id)
