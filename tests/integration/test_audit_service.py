"""Who changed what, over HTTP: every change leaves its trace, refusals too, reads none, secrets nowhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from api.access.api_keys import new_key
from api.access.audit import REFUSALS_AT_ONCE
from api.app import openapi_document
from planner.evidence.accuracy.report_document import published_report
from planner.store import open_store
from planner.store.address import database_url as sqlalchemy_url
from planner.store.engine import make_engine, writing
from tests.board_in_memory import MemoryBoard
from tests.running_service import question, service
from tests.uploads import uploaded

CHANGES_NOTHING = {
    *("POST /v1/strategies:read", "POST /v1/estimates", "POST /v1/problems:check", "POST /v1/clusters:complete"),
    *("POST /v1/scripts:read", "POST /v1/plans/{plan}/placement", "POST /v1/plans/{plan}/diagnosis"),
    *("POST /v1/towers-plans", "POST /v1/problems:bound"),
    "POST /v1/rl-plans",
    "POST /v1/rl-estimates",
    *("POST /v1/serving/plans", "POST /v1/serving/estimates"),
}
NEW = {"if-none-match": "*"}
REPORT = published_report().model_dump(mode="json")
LOG = {"files": [uploaded("nccl-tests/superbench_nccl_allreduce.log")]}
REFUSED_SWEEP = {
    "models": ["llama-3.1-8b"],
    "clusters": ["dgx-h100"],
    "device_counts": [12],
    "sequence_lengths": [2048],
    "global_batch_sizes": [64],
}
"""Its only cell is no question, so that it has ended when it is stored."""


@pytest.fixture
def keys(database_url: str) -> dict[str, str]:
    made = {scope: new_key(scope, scope, None) for scope in ("read", "plan", "admin")}
    with open_store(database_url) as store:
        for _, record in made.values():
            store.service().add_api_key(record)
    return {name: key for name, (key, _) in made.items()}


@pytest.fixture
def client(database_url: str, keys: dict[str, str]) -> Iterator[TestClient]:
    board = MemoryBoard(database_url, paused=True)
    with service(database_url, board, authentication=True, burst=10_000) as found:
        yield found


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def trail(client: TestClient, keys: dict[str, str], **filters: Any) -> list[dict[str, Any]]:
    """Everything on record, newest first, through pages of two."""
    found: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while True:
        answer = client.get("/v1/audit", params={"limit": 2, **filters, **after}, headers=bearer(keys["admin"]))
        assert answer.status_code == 200, answer.text
        found += answer.json()["events"]
        if answer.json()["next"] is None:
            return found
        after = {"before": answer.json()["next"]}


def settled(client: TestClient, keys: dict[str, str], enough: Callable[[list[dict[str, Any]]], bool]) -> list[Any]:
    """The trail once what is written beside answers has come."""
    end_s = time.monotonic() + 300
    while not enough(found := trail(client, keys)):
        assert time.monotonic() < end_s, found
        time.sleep(0.05)
    return found


def removed(client: TestClient, admin: dict[str, str], plan: str, done: dict[str, Any]) -> dict[str, Any]:
    """Answers to the removal of what was stored."""
    answers = {}
    for kind in ("clusters", "models"):
        seen = {**admin, "if-match": done[f"PUT /v1/{kind}/{{name}}"].headers["etag"]}
        answers[f"DELETE /v1/{kind}/{{name}}"] = client.delete(f"/v1/{kind}/ours", headers=seen)
    answers["DELETE /v1/labels/{name}"] = client.delete("/v1/labels/production", headers=admin)
    answers["DELETE /v1/plans/{plan}"] = client.delete(f"/v1/plans/{plan}", headers=admin)
    return answers


def test_every_change_is_on_record_and_no_read_is(client: TestClient, keys: dict[str, str]) -> None:
    admin = bearer(keys["admin"])
    made = client.post("/v1/plans", json=question(), headers=admin)
    plan = made.json()["plan_id"]
    # Files of the plan's own back-end change nothing.
    other = next(each for each in ("torchtitan", "megatron") if each != made.json()["backend"])
    job = client.post("/v1/plans", json=question(devices=4), headers={**admin, "prefer": "respond-async"}).json()["id"]
    cluster = client.get("/v1/clusters/dgx-a100-80g", headers=admin).json()["document"]
    model = client.get("/v1/models/llama-3.1-8b", headers=admin).json()["document"]
    curve = {key: question()[key] for key in ("model", "cluster", "workload")}
    done = {
        "POST /v1/plans": made,
        "PUT /v1/requests/{request_id}": client.put("/v1/requests/slurm-1", json=question(devices=2), headers=admin),
        "POST /v1/throughput": client.post("/v1/throughput", json={**curve, "device_counts": [8]}, headers=admin),
        "POST /v1/plans/{plan}:replan": client.post(f"/v1/plans/{plan}:replan", json={"devices": 8}, headers=admin),
        "POST /v1/plans/{plan}/emissions": client.post(
            f"/v1/plans/{plan}/emissions", json={"backend": other}, headers=admin
        ),
        "POST /v1/jobs/{job}:cancel": client.post(f"/v1/jobs/{job}:cancel", headers=admin),
        "POST /v1/sweeps": client.post("/v1/sweeps", json=REFUSED_SWEEP, headers=admin),
        "PUT /v1/accuracy/{name}": client.put("/v1/accuracy/ours", json=REPORT, headers={**admin, **NEW}),
        "PUT /v1/labels/{name}": client.put("/v1/labels/production", json={"plan": plan}, headers=admin),
        "PUT /v1/clusters/{name}": client.put("/v1/clusters/ours", json=cluster, headers={**admin, **NEW}),
        "POST /v1/profiles:import": client.post("/v1/profiles:import", json=LOG, headers=admin),
        "PUT /v1/models/{name}": client.put("/v1/models/ours", json=model, headers={**admin, **NEW}),
    }
    sweep = done["POST /v1/sweeps"].json()["sweep_id"]
    done["POST /v1/sweeps/{sweep}:cancel"] = client.post(f"/v1/sweeps/{sweep}:cancel", headers=admin)
    done |= removed(client, admin, plan, done)
    assert {name: answer.status_code for name, answer in done.items() if answer.status_code != 200} == {}
    unsafe = {
        f"{method.upper()} {path}"
        for path, methods in openapi_document()["paths"].items()
        for method in methods
        if method in {"post", "put", "patch", "delete"}
    }
    # A profile needs measurements on disk (test_profile_service); its route shares the code of the other two.
    # A search over pools takes long (test_pools_service); fleets are in test_fleets_service.
    # A sweep is removed once it has ended (test_sweep_service).
    elsewhere = {"PUT /v1/profiles/{name}", "DELETE /v1/profiles/{name}", "DELETE /v1/sweeps/{sweep}"}
    elsewhere |= {"POST /v1/pools-plans", "POST /v1/fleets"}
    assert unsafe == {*done, *CHANGES_NOTHING, *elsewhere}
    client.post("/v1/profiles:import", json={**LOG, "dry_run": True}, headers=admin)
    for name in CHANGES_NOTHING:
        client.post(name.split()[1], json=question(), headers=admin)
    client.post("/v1/plans", json=question(devices=2), headers=admin)
    found = settled(client, keys, lambda events: sum(each["phase"] == "ended" for each in events) >= len(done) + 1)
    prefix = keys["admin"][3:11]
    for name, answer in done.items():
        method, route = name.split()
        pair = [each for each in found if each["request_id"] == answer.headers["x-request-id"]]
        assert [(each["phase"], each["status"]) for each in pair] == [("ended", 200), ("begun", None)], name
        assert {(each["method"], each["route"], each["principal"]) for each in pair} == {(method, route, prefix)}
    assert {(each["method"], each["route"]) for each in found} == {tuple(name.split()) for name in done}
    assert len(found) == 2 * (len(done) + 1), "an answer from memory, a dry run, a check and a read change nothing"
    label = next(each for each in found if each["route"] == "/v1/labels/{name}")
    assert (label["resource"], label["kind"], label["client"]) == ("production", "key", "testclient")
    assert f"/v1/plans/{plan}" in {each["resource"] for each in found}
    assert {each["phase"] for each in trail(client, keys, phase="begun")} == {"begun"}
    assert trail(client, keys, principal="nobody\x00") == []


def test_refusals_are_on_record_without_their_secrets(client: TestClient, keys: dict[str, str]) -> None:
    prefix, secret = keys["plan"].removeprefix("mw_").split(".")
    client.get("/v1/plans", headers=bearer(f"mw_{prefix}.{'x' * 43}"))
    client.get("/v1/plans", headers=bearer(f"mw_{secret}.{prefix}"))
    client.get("/v1/labels/a%00b")
    client.put("/v1/clusters/ours", json={}, headers=bearer(keys["plan"]))
    assert client.get("/v1/audit", headers=bearer(keys["plan"])).status_code == 403
    found = settled(client, keys, lambda events: len(events) >= 5)
    assert [(each["phase"], each["status"], each["kind"], each["principal"]) for each in reversed(found)] == [
        ("refused", 401, "unknown", prefix),
        ("refused", 401, "unknown", ""),
        ("refused", 401, "unknown", ""),
        ("refused", 403, "key", prefix),
        ("refused", 403, "key", prefix),
    ]
    assert secret not in str(found)


def test_a_flood_of_refusals_is_counted_and_not_kept_one_by_one(
    client: TestClient, keys: dict[str, str], database_url: str
) -> None:
    many = REFUSALS_AT_ONCE + 150
    for _ in range(many):
        assert client.get("/v1/plans").status_code == 401
    client.app.state.service.audit.stop()  # type: ignore[attr-defined]
    with open_store(database_url) as store:
        found = [each.event for each in store.audit().page(limit=1000)]
    assert sum(event.count for event in found) == many
    assert REFUSALS_AT_ONCE <= len(found) < many


def rename(database_url: str, old: str, new: str) -> None:
    engine = make_engine(sqlalchemy_url(database_url))
    with writing(engine) as connection:
        connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))
    engine.dispose()


def test_what_cannot_be_put_on_record_is_not_done(
    client: TestClient, keys: dict[str, str], database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    admin = bearer(keys["admin"])
    plan = client.post("/v1/plans", json=question(), headers=admin).json()["plan_id"]
    # Its end is written beside the answer, and must not be what is lost.
    settled(client, keys, lambda events: [each["phase"] for each in events] == ["ended", "begun"])
    rename(database_url, "audit_events", "audit_events_away")
    try:
        for method, path, body in (
            ("PUT", "/v1/labels/production", {"plan": plan}),
            ("POST", "/v1/plans", question(devices=4)),
            ("PUT", "/v1/requests/one", question(devices=4)),
        ):
            refused = client.request(method, path, json=body, headers=admin)
            assert (refused.status_code, refused.json()["slug"]) == (503, "service-busy"), refused.text
            assert int(refused.headers["retry-after"]) > 0
            assert "audit_events" not in refused.text
        assert client.get(f"/v1/plans/{plan}", headers=admin).status_code == 200, "a read goes on"
        assert client.post("/v1/plans", json=question(), headers=admin).status_code == 200, "so does a known answer"
        assert client.get("/v1/plans").status_code == 401
        # Written beside the answer too: it must be lost before the table is back.
        end_s = time.monotonic() + 300
        while "meshwright_audit_events_lost_total 1.0" not in client.get("/metrics").text:
            assert time.monotonic() < end_s, caplog.text
            time.sleep(0.05)
    finally:
        rename(database_url, "audit_events_away", "audit_events")
    assert client.get("/v1/labels/production", headers=admin).status_code == 404
    assert client.get("/v1/requests/one", headers=admin).status_code == 404
    assert len(client.get("/v1/plans", headers=admin).json()["plans"]) == 1
    assert client.put("/v1/labels/production", json={"plan": plan}, headers=admin).status_code == 200
    settled(client, keys, lambda events: events[0]["route"] == "/v1/labels/{name}" and events[0]["phase"] == "ended")
    assert "meshwright_audit_events_lost_total 1.0" in client.get("/metrics").text
    assert "could not be put on record" in caplog.text
