"""``POST /v1/fleets``: the answer, its plans stored, the next question after it, jobs, and one clear error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.jobs.board import FleetRequest, JobRequest, read_request
from api.jobs.dbos_board import DbosBoard
from api.solving.child import answer as computed
from api.solving.results import FoundFleet, checked, task_of
from api.solving.watch import Watch
from planner.store import open_store
from tests.job_workers import PATIENCE_S, WorkerProcess, ended, quick_settings
from tests.running_service import SMALL_MODEL, WORKLOAD, service

JOB: dict[str, Any] = {
    "name": "one",
    "model": SMALL_MODEL,
    "workload": WORKLOAD,
    "constraints": {"backends": ["megatron"], "pins": {"tp": 1, "pp": 1, "cp": 1}},
}
ASKED: dict[str, Any] = {
    "pools": [{"name": "a100", "cluster": "dgx-a100-80g", "nodes": ["n[1-2]"]}],
    "jobs": [JOB, {**JOB, "name": "two"}],
}
LATER = {"Prefer": "respond-async"}


class HeardBoard(DbosBoard):
    """A board that remembers what was submitted."""

    heard: JobRequest | None = None

    def submit(self, request: JobRequest, *, key: str | None, owner: str) -> Any:
        """See ``JobBoard``."""
        self.heard = request
        return super().submit(request, key=key, owner=owner)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('fleets') / 'plans.db'}"


@pytest.fixture(scope="module")
def board(database: str) -> Iterator[HeardBoard]:
    with HeardBoard.open(database) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(database: str, board: HeardBoard) -> Iterator[TestClient]:
    with service(database, board, most_devices=64) as found:
        yield found


def test_a_fleet_is_shared_and_shared_again(client: TestClient) -> None:
    first = {"Idempotency-Key": "first"}
    answer = client.post("/v1/fleets", json=ASKED, headers=first)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert sorted(name for job in found["jobs"] for name in job["nodes"]) == ["n1", "n2"]
    for job in found["jobs"]:
        assert client.get(f"/v1/plans/{job['plan_id']}").status_code == 200
        held = {"pool": "a100", "nodes": job["nodes"], "plan": job["plan_id"]}
        alone = {**ASKED, "jobs": [{**JOB, "current": held, "device_counts": [8]}], "former": {**found, "jobs": []}}
        assert client.post("/v1/fleets", json=alone).json()["jobs"][0]["change"] == "stays"
    again = client.post("/v1/fleets", json={**ASKED, "former": found, "lost_nodes": found["jobs"][0]["nodes"]}).json()
    assert [job["change"] for job in again["jobs"]] == ["stops", "stays"]
    assert "/v1/fleets" in {each["route"] for each in client.get("/v1/audit").json()["events"]}
    replayed = client.post("/v1/fleets", json=ASKED, headers=first)
    assert (replayed.text, replayed.headers["idempotency-replayed"]) == (answer.text, "true")
    assert client.post("/v1/fleets", json={**ASKED, "seed": 1}, headers=first).status_code == 422
    assert client.get(answer.headers["location"]).text == answer.text
    assert client.get(f"/v1/fleets/{'0' * 64}").status_code == 404
    held = {"pool": "a100", "nodes": ["n1"]}
    wrong = {**ASKED, "jobs": [{**JOB, "current": held}, {**JOB, "name": "two", "current": held}]}
    refused = [client.post("/v1/fleets", json=wrong, headers={"Idempotency-Key": "wrong"}) for _ in range(2)]
    assert [each.status_code for each in refused] == [422, 422]
    assert refused[0].json()["detail"] == refused[1].json()["detail"]


def test_a_fleet_becomes_a_job_whose_answer_the_same_request_gets(
    client: TestClient, board: HeardBoard, database: str
) -> None:
    later = {**ASKED, "seed": 2}
    made = client.post("/v1/fleets", json=later, headers={**LATER, "Idempotency-Key": "later"})
    assert made.status_code == 202, made.text
    job = made.json()
    assert (job["kind"], job["status"], job["problem_id"], job["subject"]) == ("fleet", "queued", None, None)
    assert job["fleet"] == {"jobs": 2, "pools": ["a100"], "num_devices": 16}
    assert client.get(made.headers["location"]).json()["fleet"] == job["fleet"]
    for headers in ({}, LATER, {"Idempotency-Key": "later"}):
        twin = client.post("/v1/fleets", json=later, headers=headers)
        assert (twin.status_code, twin.json()["id"]) == (202, job["id"])
    assert client.post(f"/v1/jobs/{job['id']}:cancel").json()["status"] == "cancelled"
    assert client.post("/v1/fleets", json=later, headers=LATER).json()["id"] != job["id"]

    # What a worker does with it, in this process.
    assert isinstance(board.heard, FleetRequest)
    request = read_request(board.heard.canonical_json())
    assert request == board.heard
    task, payload = task_of(request)
    stop, told = threading.Event(), list[bytes]()
    message = computed(task, payload, Watch(None, stop, told.append))
    assert b"speeds" in told[0]
    assert b"allocating" in told[-1]
    found = checked(request, message.content)
    assert isinstance(found, FoundFleet)
    assert all(row.point.fits for curve in found.fleet.curves for row in curve.rows)
    assert (found.progress.done, found.progress.wanted) == (2, 2)
    with open_store(database) as store:
        kept = found.save(store, message.wall_s)
    assert client.get(f"/v1/fleets/{kept.fleet_id}").json()["jobs"][0]["name"] == "one"
    assert client.get(f"/v1/plans/{found.fleet.jobs[0].plan_id}").status_code == 200

    # Cancelled, it shares by the speeds that are known: here by none.
    stop.set()
    ended_early = checked(request, computed(task, payload, Watch(None, stop, told.append)).content)
    assert isinstance(ended_early, FoundFleet)
    assert (ended_early.fleet.undecided, ended_early.progress.done) == (2, 0)
    assert {each.change for each in ended_early.fleet.jobs} == {"waits"}


@pytest.mark.thorough  # the test above does in this process what the worker does here
def test_a_worker_shares_a_fleet(client: TestClient, board: HeardBoard, database: str) -> None:
    asked = {**ASKED, "seed": 3}
    job = client.post("/v1/fleets", json=asked, headers=LATER).json()
    with WorkerProcess(quick_settings(database)):
        record = ended(board, [job["id"]], PATIENCE_S)[0]
    assert (record.status, record.result_kind, record.progress.phase) == ("succeeded", "fleet", "storing")
    found = client.post("/v1/fleets", json=asked)
    assert found.status_code == 200
    assert found.headers["location"] == f"/v1/fleets/{record.result_fleet_id}"


@pytest.mark.parametrize(
    ("changes", "status", "said", "where"),
    [
        ({"jobs": [{**JOB, "model": "no-such-model"}]}, 404, "job one: ", "/jobs/0"),
        ({"jobs": [{**JOB, "deadline_hours": 1}]}, 422, "job one: a deadline", "/jobs/0/tokens_to_go"),
        ({"jobs": []}, 422, "at least 1", "/jobs"),
        ({"pools": [{**ASKED["pools"][0], "nodes": ["n[01-99]"]}]}, 422, "up to 64 devices", "/pools"),
        ({"jobs": [{**JOB, "current": {"pool": "a100", "nodes": ["n1"], "plan": "none"}}]}, 404, "none", None),
    ],
)
def test_what_cannot_be_gets_one_clear_error(
    client: TestClient, changes: dict[str, Any], status: int, said: str, where: str | None
) -> None:
    answer = client.post("/v1/fleets", json={**ASKED, **changes})
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert said in str(told), told
    if where is not None:
        assert told["errors"][0]["pointer"].startswith(where), told
