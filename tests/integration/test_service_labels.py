"""Labels over HTTP, and plans that are removed: real application and searches, on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.board_in_memory import MemoryBoard
from tests.running_service import problem, question, service


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    database = f"sqlite:///{tmp_path_factory.mktemp('labels') / 'plans.db'}"
    with service(database, MemoryBoard(database)) as found:
        yield found


@pytest.fixture(scope="module")
def plan(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/v1/plans", json=question()).json()
    return found


def test_labels_move_and_remember(client: TestClient, plan: dict[str, Any]) -> None:
    other = client.post("/v1/plans", json=question(devices=4)).json()["plan_id"]
    first = client.put("/v1/labels/production", json={"plan": plan["plan_id"][:16]})
    assert first.json()["version"] == 1
    moved = client.put("/v1/labels/production", json={"plan": other})
    assert [each["plan_id"] for each in moved.json()["history"]] == [other, plan["plan_id"]]
    assert client.get("/v1/plans/production").json()["plan_id"] == other
    assert client.get("/v1/labels/production").json() == moved.json()
    difference = client.get(f"/v1/plans/{plan['plan_id']}/diff/production").json()
    assert (difference["same_problem"], difference["identical"]) == (False, False)
    seen = client.get("/v1/labels/production")
    assert client.get("/v1/labels/production", headers={"if-none-match": seen.headers["etag"]}).status_code == 304
    late = client.put("/v1/labels/production", json={"plan": plan["plan_id"]}, headers={"if-match": '"1"'})
    problem(late, 412, "precondition-failed")
    new = client.put("/v1/labels/production", json={"plan": other}, headers={"if-none-match": "*"})
    problem(new, 412, "precondition-failed")
    same = client.put("/v1/labels/production", json={"plan": other}, headers={"if-match": seen.headers["etag"]})
    assert same.json()["version"] == 2
    assert client.get("/v1/labels").json()["labels"] == [
        {"name": "production", "plan_id": other, "version": 2, "created_at": same.json()["history"][0]["created_at"]}
    ]
    problem(client.put("/v1/labels/abc123", json={"plan": other}), 422, "document-invalid")
    problem(client.get("/v1/labels/nothing"), 404, "not-found")


def test_a_removed_plan_is_gone_and_its_question_is_planned_anew(client: TestClient) -> None:
    asked = question(devices=4, workload={"global_batch_size": 24, "sequence_length": 1024})
    made = client.post("/v1/plans", json=asked, headers={"idempotency-key": "once"}).json()["plan_id"]
    client.put("/v1/labels/doomed", json={"plan": made})
    problem(client.delete(f"/v1/plans/{made}"), 409, "conflict")
    assert client.delete("/v1/labels/doomed").json() == {"name": "doomed", "versions": 1}
    gone = client.delete(f"/v1/plans/{made}").json()
    assert (gone["plan_id"], gone["requests"]) == (made, 1)
    for answer in (client.get(f"/v1/plans/{made}"), client.delete(f"/v1/plans/{made}")):
        problem(answer, 404, "not-found")
    again = client.post("/v1/plans", json=asked, headers={"idempotency-key": "once"})
    assert (again.status_code, again.headers["meshwright-source"]) == (200, "search")
    assert client.head(f"/v1/plans/{again.json()['plan_id']}").headers["etag"] == again.headers["etag"]
