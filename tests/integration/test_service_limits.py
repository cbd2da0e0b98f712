"""What the service refuses: bad bodies, strangers, too much at once; and what it does when parts of it fail."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.access.api_keys import new_key
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.job_workers import PATIENCE_S, wait_for
from tests.running_service import question, service
from tests.unit.api.test_json_body import MALFORMED

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('limits') / 'plans.db'}"


@pytest.fixture(scope="module")
def keys(database: str) -> dict[str, str]:
    made = {scope: new_key(scope, scope, None) for scope in ("read", "plan", "admin")}
    made["expired"] = new_key("old", "admin", 1, datetime.now(UTC) - timedelta(days=2))
    made["revoked"] = new_key("gone", "admin", None)
    with open_store(database) as store:
        records = store.service()
        for _, record in made.values():
            records.add_api_key(record)
        assert records.revoke_api_key(made["revoked"][1].prefix)
        assert not records.revoke_api_key("0000")
    return {name: key for name, (key, _) in made.items()}


@pytest.fixture(scope="module")
def client(database: str, keys: dict[str, str]) -> Iterator[TestClient]:
    board = MemoryBoard(database, paused=True, capacity=1)
    limits: dict[str, Any] = {"authentication": True, "body_limit_bytes": 50_000, "burst": 10_000, "synchronous_s": 60}
    with service(database, board, most_devices=64, most_layers=40, most_counts=3, **limits) as found:
        yield found


@pytest.fixture
def admin(keys: dict[str, str]) -> dict[str, str]:
    return {"authorization": f"Bearer {keys['admin']}"}


@pytest.mark.parametrize("name", MALFORMED)
def test_the_malformed_corpus_gets_a_problem(client: TestClient, admin: dict[str, str], name: str) -> None:
    content = MALFORMED[name][0]
    for path in ("/v1/plans", "/v1/estimates", "/v1/problems:check"):
        response = client.post(path, content=content[:40_000], headers={**JSON, **admin})
        assert response.status_code == 422, response.text
        assert response.headers["content-type"] == "application/problem+json"
        assert len(response.content) < 1_000


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"content-type": "text/plain"}, b"{}", 415),
        ({}, b"{}", 415),
        ({**JSON, "content-encoding": "gzip"}, b"\x1f\x8b", 415),
        ({"content-type": "application/json; charset=latin-1"}, b"{}", 415),
        (JSON, b" " * 60_000, 413),
        ({**JSON, "content-length": "99999999999999999999"}, b"{}", 413),
        (JSON, b"[1, 2]", 422),
        (JSON, b'"text"', 422),
    ],
)
def test_bodies_that_are_not_read(
    client: TestClient, admin: dict[str, str], headers: dict[str, str], content: bytes, status: int
) -> None:
    response = client.post("/v1/plans", content=content, headers={**headers, **admin})
    assert response.status_code == status, response.text
    assert response.json()["errors"] or response.json()["detail"]


def test_a_body_without_a_length_stops_at_the_limit(client: TestClient, admin: dict[str, str]) -> None:
    sent = []

    def pieces() -> Iterator[bytes]:
        for _ in range(1_000):
            sent.append(1)
            yield b" " * 1_000

    response = client.post("/v1/plans", content=pieces(), headers={**JSON, **admin})
    assert response.status_code == 413


@pytest.mark.parametrize("name", ["expired", "revoked"])
def test_keys_that_no_longer_count(client: TestClient, keys: dict[str, str], name: str) -> None:
    response = client.get("/v1/plans", headers={"authorization": f"Bearer {keys[name]}"})
    assert (response.status_code, response.json()["slug"]) == (401, "not-authenticated")
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", "Basic bXc6eA==", "Bearer mw_00000000.wrong", "Bearer mw_' OR 1=1.x"]
)
def test_strangers_learn_nothing(client: TestClient, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    for method, path in (("GET", "/v1/plans"), ("POST", "/v1/plans"), ("PUT", "/v1/clusters/x"), ("GET", "/v1/jobs")):
        assert client.request(method, path, headers=headers).status_code == 401
    assert client.get("/livez", headers=headers).status_code == 200


def test_a_wrong_secret_of_a_known_prefix_is_refused(client: TestClient, keys: dict[str, str]) -> None:
    prefix = keys["admin"].partition(".")[0]
    response = client.get("/v1/plans", headers={"authorization": f"Bearer {prefix}.{'x' * 43}"})
    assert response.status_code == 401


def test_scopes_bound_what_a_key_may_do(client: TestClient, keys: dict[str, str]) -> None:
    def status(scope: str, method: str, path: str) -> int:
        headers = {"authorization": f"Bearer {keys[scope]}", **JSON}
        return int(client.request(method, path, headers=headers, content=b"{}").status_code)

    assert status("read", "GET", "/v1/plans") == 200
    assert status("read", "POST", "/v1/plans") == 403
    assert status("plan", "POST", "/v1/plans") == 422
    assert status("plan", "PUT", "/v1/clusters/x") == 403
    assert status("admin", "PUT", "/v1/clusters/x") == 428


def test_questions_beyond_the_limits_are_refused_with_the_figure(client: TestClient, admin: dict[str, str]) -> None:
    for change, pointer, figure in (
        ({"devices": 128}, "/devices", "64"),
        ({"model": "llama-3.1-70b"}, "/model", "40"),
        ({"workload": {"global_batch_size": 2**60, "sequence_length": 1}}, "/workload/global_batch_size", "10"),
        ({"constraints": {"pins": {"tp": 10**15}}}, "/constraints/pins/tp", "10000000"),
        ({"constraints": {"forbids": ["dp_shard"]}}, "/constraints/forbids/0", ""),
        ({"cluster": "../../etc/passwd"}, "/cluster", ""),
        ({"model": "/etc/passwd"}, "/model", ""),
        ({"cluster": "http://169.254.169.254/latest"}, "/cluster", ""),
    ):
        response = client.post("/v1/plans", json=question(**change), headers=admin)
        assert response.status_code == 422, response.text
        first = response.json()["errors"][0]
        assert first["pointer"] == pointer
        assert figure in first["detail"] + (first.get("hint") or "")
    counts = {"model": question()["model"], "cluster": "dgx-h100", "workload": question()["workload"]}
    many = client.post("/v1/throughput", json={**counts, "device_counts": [8, 16, 24, 32]}, headers=admin)
    assert many.status_code == 400


def test_numbers_that_no_machine_has_are_the_askers_mistake(client: TestClient, admin: dict[str, str]) -> None:
    cluster = client.get("/v1/clusters/dgx-a100-80g", headers=admin).json()["document"]
    for field, value in (("nic_bandwidth_bytes_per_s", 1e-300), ("nic_latency_s", 1e300)):
        pool = {**cluster["pools"][0], field: value}
        response = client.post(
            "/v1/plans", json=question(cluster={**cluster, "pools": [pool]}, devices=16), headers=admin
        )
        assert response.status_code in {200, 422}, response.text


def test_a_full_queue_refuses_politely(client: TestClient, admin: dict[str, str]) -> None:
    headers = {**admin, "prefer": "respond-async"}
    first = client.post("/v1/plans", json=question(seed=1, devices=2), headers=headers)
    second = client.post("/v1/plans", json=question(seed=2, devices=1), headers=headers)
    assert (first.status_code, second.status_code) == (202, 429)
    assert (second.json()["slug"], second.headers["retry-after"]) == ("queue-full", "7")
    assert client.get("/readyz").json()["checks"]["queued_jobs"] == "1"
    ended = client.post(f"{first.headers['location']}:cancel", headers=admin)
    assert ended.json()["status"] == "cancelled"


def test_a_job_of_another_caller_is_theirs_to_end(client: TestClient, keys: dict[str, str]) -> None:
    def asked(scope: str, path: str, **body: Any) -> Any:
        headers = {"authorization": f"Bearer {keys[scope]}", "prefer": "respond-async"}
        return client.post(path, headers=headers, json=question(**body) if body else None)

    where = asked("plan", "/v1/plans", seed=7, devices=4).headers["location"]
    assert asked("admin", "/v1/plans", seed=7, devices=4).json()["id"] == where.rpartition("/")[2]
    assert asked("admin", f"{where}:cancel").json()["status"] == "queued", "the other still waits"
    refused = asked("read", f"{where}:cancel")
    assert refused.status_code == 403
    assert asked("plan", f"{where}:cancel").json()["status"] == "cancelled"

    made = asked("admin", "/v1/plans", seed=8, devices=4, priority=1)
    assert made.headers["preference-applied"] == "respond-async"
    where = made.headers["location"]
    overtaking = asked("plan", "/v1/plans", seed=8, devices=4, priority=1)
    assert (overtaking.status_code, overtaking.json()["slug"]) == (403, "scope-missing")
    refused = asked("plan", f"{where}:cancel")
    assert (refused.status_code, refused.json()["slug"]) == (403, "scope-missing")
    assert asked("admin", f"{where}:cancel").json()["status"] == "cancelled"


def test_nothing_of_a_question_is_ignored(client: TestClient, admin: dict[str, str]) -> None:
    for query, pointer, hint in (
        ("statsu=queued", "statsu", "did you mean status?"),
        ("limit=2&limit=3", "limit", "give it once"),
        ("xyz=0&limit=1", "xyz", "it takes before, limit, mine, status"),
    ):
        refused = client.get(f"/v1/jobs?{query}", headers=admin)
        assert refused.status_code == 422, refused.text
        assert [(each["pointer"], each["hint"]) for each in refused.json()["errors"]] == [(pointer, hint)]
    assert client.get("/v1/jobs?limit=1", headers=admin).status_code == 200
    assert client.get("/livez?verbose=1").status_code == 200, "probes are asked as their tools like"
    for workload, detail in (
        ({"global_batch_size": True, "sequence_length": 2048}, "must be a number, not true"),
        ({"global_batch_size": "16", "sequence_length": 2048}, "must be a number, not a text"),
    ):
        refused = client.post("/v1/plans", json=question(workload=workload), headers=admin)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert (error["pointer"], error["detail"]) == ("/workload/global_batch_size", detail)


def test_a_caller_s_event_streams_are_counted(client: TestClient, keys: dict[str, str], admin: dict[str, str]) -> None:
    running = client.app.state.service  # type: ignore[attr-defined]
    headers = {**admin, "prefer": "respond-async"}
    where = client.post("/v1/plans", json=question(seed=9, devices=2), headers=headers).headers["location"]
    owner = keys["admin"].partition(".")[0].removeprefix("mw_")
    with ExitStack() as held:
        for _ in range(running.settings.streams_of_caller):
            held.enter_context(running.streams.opened(owner))
        refused = client.get(f"{where}/events", headers=admin)
        assert (refused.status_code, refused.json()["slug"]) == (429, "too-many-requests")
        assert int(refused.headers["retry-after"]) > 0
        assert client.get("/readyz").status_code == 200
        client.post(f"{where}:cancel", headers=admin)
        other = client.get(f"{where}/events", headers={"authorization": f"Bearer {keys['read']}"})
        assert "cancelled" in other.text
    assert client.get(f"{where}/events", headers=admin).status_code == 200


def test_a_dead_solving_process_is_replaced(client: TestClient, admin: dict[str, str]) -> None:
    running = client.app.state.service  # type: ignore[attr-defined]
    (child,) = running.quick._pool._idle

    def estimate(tp: int) -> Any:
        return client.post("/v1/estimates", json=question(strategy={"tp": tp}), headers=admin)

    assert estimate(1).status_code == 200
    child.process.kill()
    child.process.wait(300)
    assert estimate(2).status_code == 200, "one that died while nobody asked it is replaced unseen"
    (child,) = running.quick._pool._idle
    with ThreadPoolExecutor(1) as threads:
        child.process.send_signal(signal.SIGSTOP)
        asked = threads.submit(estimate, 4)
        wait_for(lambda: child.solves == 2, PATIENCE_S, "it has the question")
        child.process.kill()
        died = asked.result()
    assert (died.status_code, died.json()["slug"]) == (500, "solver-crashed")
    assert estimate(4).status_code == 200


def test_a_search_that_takes_too_long_becomes_a_job_or_is_refused(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    large = question(model="llama-3.1-70b", cluster="dgx-h100", devices=64)
    large["workload"] = {"global_batch_size": 1024, "sequence_length": 4096}
    with service(database, MemoryBoard(database, paused=True), synchronous_s=0.2) as client:
        made = client.post("/v1/plans", json=large)
        assert made.status_code == 202, made.text
        assert made.json()["status"] == "queued"
    with service(database, synchronous_s=0.2) as client:
        refused = client.post("/v1/plans", json=large)
        assert (refused.status_code, refused.json()["slug"]) == (503, "service-busy")
        assert int(refused.headers["retry-after"]) > 0
        assert client.get("/v1/jobs").status_code == 503


def test_a_key_that_asks_too_fast_has_to_wait(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    key, record = new_key("fast", "read", None)
    with open_store(database) as store:
        store.service().add_api_key(record)
    headers = {"authorization": f"Bearer {key}"}
    with service(database, authentication=True, requests_per_s=0.5, burst=2) as client:
        answers = [client.get("/v1/devices/x", headers=headers) for _ in range(3)]
        statuses = [each.status_code for each in answers]
        refused = client.get("/v1/devices/x", headers=headers)
    assert statuses == [404, 404, 429]
    # The seconds until the bucket is full again depend on how long the answers took.
    assert [each.headers["ratelimit"].partition(";t=")[0] for each in answers[:2]] == ['"key";r=1', '"key";r=0']
    assert answers[0].headers["ratelimit-policy"] == '"key";q=2;w=4'
    assert (refused.json()["slug"], refused.headers["retry-after"]) == ("too-many-requests", "2")


@pytest.mark.postgres
def test_a_lost_database_is_a_503_and_comes_back(request: pytest.FixtureRequest) -> None:
    from tests.postgres_server import PostgresServer, server_programs

    programs = server_programs()
    if programs is None:
        pytest.skip("PostgreSQL server programs are not installed")
    server = PostgresServer(programs)
    server.start()
    try:
        with service(server.create_database("lost")) as client:
            assert client.get("/v1/plans").status_code == 200
            server.halt()
            for path in ("/v1/plans", "/v1/plans/abcdef", "/v1/labels/x"):
                away = client.get(path)
                assert (away.status_code, away.json()["slug"]) == (503, "store-unavailable")
                assert int(away.headers["retry-after"]) > 0
                assert str(server.url("lost")) not in away.text
            for method, path, body in (("POST", "/v1/plans", question()), ("PUT", "/v1/labels/x", {"plan": "abcdef"})):
                refused = client.request(method, path, json=body)
                assert refused.status_code == 503, refused.text
                assert int(refused.headers["retry-after"]) > 0
            assert client.get("/readyz").status_code == 503
            assert client.get("/livez").status_code == 200
            server.resume()
            assert client.get("/v1/plans").status_code == 200
            assert client.get("/readyz").status_code == 200
    finally:
        server.stop()
