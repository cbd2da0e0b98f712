"""``POST /v1/fleets``: the answer, its plans stored, the answer as the next question's former, one clear error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.board_in_memory import MemoryBoard
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


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    database = f"sqlite:///{tmp_path_factory.mktemp('fleets') / 'plans.db'}"
    with service(database, MemoryBoard(database, paused=True), most_devices=64) as found:
        yield found


def test_a_fleet_is_shared_and_shared_again(client: TestClient) -> None:
    answer = client.post("/v1/fleets", json=ASKED)
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
