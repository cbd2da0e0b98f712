"""Sweeps over HTTP on both databases: stored, answered by jobs, repeated, cancelled; real searches of small models."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.wire.problem_details import in_fields
from planner.answers.sweep.serial import Serial
from planner.answers.sweep.table import line
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.running_service import SMALL_MODEL, question, service
from tests.sweep_cells import cells_of, small_question, sweep

ASKED: dict[str, Any] = {
    "models": ["llama-3.2-1b", "llama-3.1-70b"],
    "clusters": ["dgx-h100"],
    "device_counts": [4, 12, 16],
    "sequence_lengths": [2048],
    "global_batch_sizes": [64],
    "constraints": {"backends": ["megatron"]},
    "top_k": 0,
}
OUTCOMES = ["planned", "refused", "planned", "infeasible", "refused", "planned"]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('sweeps') / 'plans.db'}"
    return str(request.getfixturevalue("postgres_server").create_database("sweeps"))


@pytest.fixture(scope="module")
def client(database: str) -> Iterator[TestClient]:
    with service(database, MemoryBoard(database)) as found:
        yield found


def ended(client: TestClient, sweep_id: str, timeout_s: float = 300.0) -> dict[str, Any]:
    end_s = time.monotonic() + timeout_s
    while True:
        found: dict[str, Any] = client.get(f"/v1/sweeps/{sweep_id}").json()
        if found["ended_at"] is not None:
            return found
        assert time.monotonic() < end_s, found["progress"]
        time.sleep(0.05)


@pytest.fixture(scope="module")
def answered(client: TestClient) -> dict[str, Any]:
    response = client.post("/v1/sweeps", json=ASKED)
    assert response.status_code == 202, response.text
    assert response.headers["location"] == f"/v1/sweeps/{response.json()['sweep_id']}"
    assert response.json()["progress"]["refused"] == 2, "what is no question is answered at once"
    return ended(client, response.json()["sweep_id"])


def test_every_cell_is_answered_as_the_command_answers_it(
    client: TestClient, answered: dict[str, Any], tmp_path: Path
) -> None:
    assert answered["status"] == "finished"
    assert [cell["outcome"] for cell in answered["cells"]] == OUTCOMES
    with open_store(f"sqlite:///{tmp_path / 'local.db'}") as store:
        local = [line(each) for each in sweep(cells_of(small_question()), store, Serial())]
    own = {"where", "wall_s", "worker"}
    assert [set(cell) for cell in answered["cells"]] == [set(each) | {"job_id"} for each in local]
    for cell, each in zip(answered["cells"], local, strict=True):
        told, said = ({name: _in_fields(one[name]) for name in each if name not in own} for one in (cell, each))
        assert told == said


def _in_fields(value: Any) -> Any:
    """Sentences name a part of the question by its field in one door and by its flag in the other."""
    if isinstance(value, list):
        return [_in_fields(each) for each in value]
    return in_fields(value) if isinstance(value, str) else value


def test_a_planned_cell_leads_to_its_plan_and_an_infeasible_one_says_why(
    client: TestClient, answered: dict[str, Any]
) -> None:
    planned, infeasible = answered["cells"][0], answered["cells"][3]
    assert client.get(f"/v1/plans/{planned['plan_id']}").json()["step_time_s"] == planned["step_time_s"]
    assert client.get(f"/v1/jobs/{planned['job_id']}").json()["status"] == "succeeded"
    assert "needs about" in infeasible["reason"]
    assert infeasible["binding"] == "device memory"
    assert infeasible["fits"] is False
    assert answered["cells"][1]["where"] == "/device_counts"


def test_the_same_content_is_the_same_sweep_and_solves_nothing(client: TestClient, answered: dict[str, Any]) -> None:
    again = client.post("/v1/sweeps", json={**ASKED, "precision": "bf16"})
    assert (again.status_code, again.json()["sweep_id"]) == (200, answered["sweep_id"])
    assert client.get(f"/v1/sweeps/{answered['sweep_id']}").json() == answered
    trail = client.get("/v1/audit").json()["events"]
    assert len([each for each in trail if each["route"] == "/v1/sweeps" and each["phase"] == "begun"]) == 1


def test_a_larger_sweep_takes_what_is_known(client: TestClient, answered: dict[str, Any]) -> None:
    jobs = len(client.get("/v1/jobs").json()["jobs"])
    response = client.post("/v1/sweeps", json={**ASKED, "device_counts": [4, 16], "price_per_device_hour": 2.0})
    assert response.json()["sweep_id"] != answered["sweep_id"]
    found = ended(client, response.json()["sweep_id"])
    assert [cell["outcome"] for cell in found["cells"]] == ["planned", "planned", "infeasible", "planned"]
    assert [cell["source"] for cell in found["cells"]] == ["stored", "stored", "searched", "stored"]
    assert found["cells"][2]["job_id"] == answered["cells"][3]["job_id"], "what does not fit is not searched again"
    assert len(client.get("/v1/jobs").json()["jobs"]) == jobs
    cell = found["cells"][0]
    assert cell["cost_per_step"] == pytest.approx(2.0 * cell["num_devices"] * cell["step_time_s"] / 3600)


def test_documents_stand_where_names_may(client: TestClient) -> None:
    asked = {**ASKED, "models": [SMALL_MODEL], "device_counts": [8]}
    found = ended(client, client.post("/v1/sweeps", json=asked).json()["sweep_id"])
    assert [(cell["model"], cell["outcome"]) for cell in found["cells"]] == [(SMALL_MODEL["name"], "planned")]
    assert found["question"]["models"] == [SMALL_MODEL["name"]]


def test_a_name_that_comes_to_mean_something_else_makes_another_sweep(client: TestClient) -> None:
    asked = {**ASKED, "models": ["ours"], "device_counts": [8]}
    new = {"if-none-match": "*"}
    first = client.put("/v1/models/ours", json=SMALL_MODEL, headers=new)
    before = client.post("/v1/sweeps", json=asked).json()["sweep_id"]
    other = {**SMALL_MODEL, "vocab_size": SMALL_MODEL["vocab_size"] * 2}
    client.put("/v1/models/ours", json=other, headers={"if-match": first.headers["etag"]}).raise_for_status()
    after = client.post("/v1/sweeps", json=asked).json()["sweep_id"]
    assert before != after
    one, two = (ended(client, each)["cells"][0] for each in (before, after))
    assert one["problem_id"] != two["problem_id"]


def test_pages_are_keyset_pages(client: TestClient, answered: dict[str, Any]) -> None:
    whole = client.get("/v1/sweeps").json()["sweeps"]
    assert len(whole) >= 2
    assert "cells" not in whole[0]
    first = client.get("/v1/sweeps", params={"limit": 1}).json()
    second = client.get("/v1/sweeps", params={"limit": 1, "after": first["next"]}).json()
    assert [*first["sweeps"], *second["sweeps"]] == whole[:2]
    assert client.get("/v1/sweeps", params={"after": "f" * 64}).status_code == 404


def test_a_client_that_knows_the_state_gets_no_body(client: TestClient, answered: dict[str, Any]) -> None:
    address = f"/v1/sweeps/{answered['sweep_id']}"
    tag = client.get(address).headers["etag"]
    assert client.get(address, headers={"if-none-match": tag}).status_code == 304


def test_an_idempotency_key_replays_and_belongs_to_its_content(client: TestClient, answered: dict[str, Any]) -> None:
    key = {"idempotency-key": "nightly"}
    first = client.post("/v1/sweeps", json=ASKED, headers=key)
    again = client.post("/v1/sweeps", json=ASKED, headers=key)
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = client.post("/v1/sweeps", json={**ASKED, "seed": 1}, headers=key)
    assert (other.status_code, other.json()["slug"]) == (422, "key-reused")


@pytest.mark.parametrize(
    ("change", "status", "pointer"),
    [
        ({"models": ["llama-3.2-1b", "llama-9"]}, 404, "/models/1"),
        ({"clusters": ["../secret.yaml"]}, 422, "/clusters/0"),
        ({"clusters": ["http://example.org/c"]}, 422, "/clusters/0"),
        ({"models": []}, 422, "/models"),
        ({"device_counts": [8, 10_000_000]}, 422, "/device_counts/1"),
        ({"sequence_lengths": [10**15]}, 422, "/sequence_lengths/0"),
        ({"device_counts": list(range(1, 1000))}, 400, ""),
        ({"constraints": {"pins": {"tq": 4}}}, 422, "/constraints/pins/tq"),
        ({"constraints": {"backends": ["native", "nativ"]}}, 422, "/constraints/backends/1"),
        ({"framework": "other", "constraints": {"backends": ["native"]}}, 422, "/framework"),
        ({"wish": 1}, 422, "/wish"),
        ({"models": [SMALL_MODEL, {**SMALL_MODEL, "vocab_size": 1024}]}, 422, "/models/1"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place(
    client: TestClient, change: dict[str, Any], status: int, pointer: str
) -> None:
    response = client.post("/v1/sweeps", json={**ASKED, **change})
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert pointer in {each["pointer"] for each in response.json()["errors"]}, response.text


def test_an_unknown_sweep_is_not_found(client: TestClient) -> None:
    assert client.get(f"/v1/sweeps/{'0' * 64}").status_code == 404
    assert client.post(f"/v1/sweeps/{'0' * 64}:cancel").status_code == 404
    assert client.get("/v1/sweeps/12").status_code == 422


def test_a_cancelled_sweep_keeps_its_answers_and_goes_on_when_asked_again(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    asked = {**ASKED, "device_counts": [4, 12, 16], "seed": 5}
    with service(database, MemoryBoard(database, paused=True)) as client:
        plan = question(model="llama-3.2-1b", cluster="dgx-h100", devices=4, seed=5, top_k=0)
        plan["workload"] = {"global_batch_size": 64, "sequence_length": 2048}
        earlier = client.post("/v1/plans", json=plan, headers={"prefer": "respond-async"}).json()["id"]
        sweep_id = client.post("/v1/sweeps", json=asked).json()["sweep_id"]
        _submitted(client, sweep_id, 4)
        assert client.post(f"/v1/sweeps/{sweep_id}:cancel").json()["status"] == "cancelling"
        found = ended(client, sweep_id)
        assert found["status"] == "cancelled"
        assert [cell["outcome"] for cell in found["cells"]] == [
            *("missing", "refused", "missing", "missing", "refused", "missing")
        ]
        states = {each["id"]: each["status"] for each in client.get("/v1/jobs").json()["jobs"]}
        assert states.pop(earlier) == "queued", "somebody else asked for this one before"
        assert set(states.values()) == {"cancelled"}
        assert client.post(f"/v1/sweeps/{sweep_id}:cancel").json()["status"] == "cancelled"
    with service(database, MemoryBoard(database)) as client:
        again = client.post("/v1/sweeps", json=asked)
        assert (again.status_code, again.json()["sweep_id"]) == (202, sweep_id)
        assert [cell["outcome"] for cell in ended(client, sweep_id)["cells"]] == OUTCOMES


def test_a_job_that_another_sweep_waits_for_goes_on(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    with service(database, MemoryBoard(database, paused=True)) as client:
        one = client.post("/v1/sweeps", json={**ASKED, "device_counts": [4]}).json()["sweep_id"]
        two = client.post("/v1/sweeps", json={**ASKED, "device_counts": [4, 16]}).json()["sweep_id"]
        _submitted(client, one, 2)
        _submitted(client, two, 4)
        client.post(f"/v1/sweeps/{two}:cancel").raise_for_status()
        assert ended(client, two)["status"] == "cancelled"
        shared = {cell["job_id"] for cell in client.get(f"/v1/sweeps/{one}").json()["cells"]}
        states = {each["id"]: each["status"] for each in client.get("/v1/jobs").json()["jobs"]}
        assert {states[job] for job in shared} == {"queued"}
        assert sorted(states.values()) == ["cancelled", "cancelled", "queued", "queued"]


def test_a_key_outlives_its_sweep(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    with service(database, MemoryBoard(database)) as client:
        key = {"idempotency-key": "nightly"}
        sweep_id = client.post("/v1/sweeps", json=ASKED, headers=key).json()["sweep_id"]
        ended(client, sweep_id)
        with open_store(database) as store:
            assert store.retention().forget_sweeps(datetime.now(UTC), 9) == 1
        assert client.get(f"/v1/sweeps/{sweep_id}").status_code == 404
        assert client.post("/v1/sweeps", json=ASKED, headers=key).json()["sweep_id"] == sweep_id
        assert ended(client, sweep_id)["progress"]["planned"] == 3


def test_a_service_without_jobs_takes_no_sweeps(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path / 'plans.db'}") as client:
        response = client.post("/v1/sweeps", json=ASKED)
    assert (response.status_code, response.json()["slug"]) == (503, "service-busy")


def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    with service(database, MemoryBoard(database, capacity=1)) as client:
        sweep_id = client.post("/v1/sweeps", json=ASKED).json()["sweep_id"]
        assert [cell["outcome"] for cell in ended(client, sweep_id)["cells"]] == OUTCOMES


def _submitted(client: TestClient, sweep_id: str, jobs: int) -> None:
    end_s = time.monotonic() + 300
    while sum(cell["job_id"] is not None for cell in client.get(f"/v1/sweeps/{sweep_id}").json()["cells"]) < jobs:
        assert time.monotonic() < end_s
        time.sleep(0.05)
