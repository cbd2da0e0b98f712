"""The service on both databases: real application, real solving processes, real searches of a small model."""

from __future__ import annotations

import io
import json
import signal
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.service import Service
from planner.model.builtin import builtin_document
from tests.board_in_memory import MemoryBoard
from tests.running_service import WORKLOAD, problem, question, service


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    if request.param == "sqlite":
        database = f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"
    else:
        database = request.getfixturevalue("postgres_server").create_database("service")
    with service(database, MemoryBoard(database)) as found:
        yield found


@pytest.fixture(scope="module")
def plan(client: TestClient) -> dict[str, Any]:
    response = client.post("/v1/plans", json=question())
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def service_behind(client: TestClient) -> Service:
    found: Service = client.app.state.service  # type: ignore[attr-defined]
    return found


def test_the_same_content_never_solves_twice(client: TestClient) -> None:
    asked = question(top_k=1)
    first = client.post("/v1/plans", json=asked)
    assert first.headers["meshwright-source"] == "search"
    again = client.post("/v1/plans", json=asked)
    # Another spelling of the same content.
    other = client.post("/v1/plans", content=json.dumps(asked, indent=3), headers={"content-type": "application/json"})
    assert [again.headers["meshwright-source"], other.headers["meshwright-source"]] == ["memory", "memory"]
    assert first.content == again.content == other.content
    assert first.json()["status"] == "optimal"


def test_questions_that_arrive_together_share_one_search(client: TestClient) -> None:
    asked = question(workload={**WORKLOAD, "global_batch_size": 48})
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: client.post("/v1/plans", json=asked), range(8)))
    sources = sorted(answer.headers["meshwright-source"] for answer in answers)
    assert sources.count("search") == 1
    assert len({answer.content for answer in answers}) == 1


def test_a_plan_has_an_address_a_tag_and_is_immutable(client: TestClient, plan: dict[str, Any]) -> None:
    plan_id = plan["plan_id"]
    found = client.get(f"/v1/plans/{plan_id}")
    assert found.json() == plan
    assert found.headers["etag"] == f'"{plan_id}"'
    assert "immutable" in found.headers["cache-control"]
    same = client.get(f"/v1/plans/{plan_id}", headers={"if-none-match": found.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    prefix = client.get(f"/v1/plans/{plan_id[:12]}")
    assert prefix.json() == plan
    assert "immutable" not in prefix.headers["cache-control"]
    problem(client.get("/v1/plans/ffffffffffff"), 404, "not-found")


def test_the_stored_text_answers_after_a_restart(client: TestClient, plan: dict[str, Any]) -> None:
    database = client.app.state.service.settings.database  # type: ignore[attr-defined]
    with service(database) as second:
        answer = second.post("/v1/plans", json=question())
    assert answer.headers["meshwright-source"] == "database"
    assert answer.json() == plan


def test_an_idempotency_key_replays_refuses_and_belongs_to_its_content(client: TestClient) -> None:
    key, asked = {"idempotency-key": "night-run-7"}, question(workload={**WORKLOAD, "global_batch_size": 32})
    first = client.post("/v1/plans", json=asked, headers=key)
    again = client.post("/v1/plans", json=asked, headers=key)
    assert first.status_code == again.status_code == 200
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert again.content == first.content
    problem(client.post("/v1/plans", json=question(seed=1), headers=key), 422, "key-reused")
    problem(client.post("/v1/plans", json=asked, headers={"idempotency-key": "two words"}), 400, "request-refused")


def test_an_answer_that_no_plan_fits_is_replayed_too(client: TestClient) -> None:
    key, asked = {"idempotency-key": "too-big"}, question(constraints={"pins": {"tp": 8, "pp": 8}})
    first = problem(client.post("/v1/plans", json=asked, headers=key), 422, "no-feasible-plan")
    again = problem(client.post("/v1/plans", json=asked, headers=key), 422, "no-feasible-plan")
    assert {**first, "request_id": ""} == {**again, "request_id": ""}
    assert first["binding"]


def test_equal_keys_at_once_are_one_request(client: TestClient) -> None:
    asked, key = question(workload={**WORKLOAD, "global_batch_size": 80}), {"idempotency-key": "all-at-once"}
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: client.post("/v1/plans", json=asked, headers=key), range(40)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) <= {200, 409}
    assert statuses.count(200) >= 1
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["slug"] == "key-in-flight"
            assert answer.headers["retry-after"] == "1"


def test_a_job_is_made_when_asked_for_watched_and_read(client: TestClient) -> None:
    asked = question(workload={**WORKLOAD, "sequence_length": 1024})
    made = client.post("/v1/plans", json=asked, headers={"prefer": "respond-async"})
    assert made.status_code == 202
    where = made.headers["location"]
    assert int(made.headers["retry-after"]) > 0
    with client.stream("GET", f"{where}/events") as stream:
        events = [line for line in stream.iter_lines() if line.startswith(("id:", "event:"))]
    numbers = [int(line[3:]) for line in events if line.startswith("id:")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert events[-1] == "event: succeeded"
    with client.stream("GET", f"{where}/events", headers={"last-event-id": "1"}) as stream:
        rest = [int(line[3:]) for line in stream.iter_lines() if line.startswith("id:")]
    assert rest == numbers[1:]
    job = client.get(where)
    assert job.json()["status"] == "succeeded"
    assert client.get(where, headers={"if-none-match": job.headers["etag"]}).status_code == 304
    assert client.get(f"/v1/plans/{job.json()['result_plan_id']}").status_code == 200
    listed = client.get("/v1/jobs", params={"status": "succeeded"}).json()["jobs"]
    assert job.json()["id"] in {each["id"] for each in listed}
    assert client.post(f"{where}:cancel").json()["status"] == "succeeded"
    problem(client.get("/v1/jobs/nothing"), 404, "not-found")
    # Known content needs no job.
    assert client.post("/v1/plans", json=asked, headers={"prefer": "respond-async"}).status_code == 200


def test_a_schedulers_own_id_is_planned_once(client: TestClient) -> None:
    asked = question(workload={**WORKLOAD, "global_batch_size": 64})
    first, second = (client.put("/v1/requests/slurm-4711", json=asked) for _ in range(2))
    assert first.status_code == second.status_code == 200
    assert first.content == second.content
    view = client.get("/v1/requests/slurm-4711").json()
    assert (view["state"], view["plan_id"]) == ("answered", first.json()["plan_id"])
    problem(client.put("/v1/requests/slurm-4711", json=question(seed=3)), 422, "key-reused")
    problem(client.get("/v1/requests/unheard-of"), 404, "not-found")
    other = question(workload={**WORKLOAD, "sequence_length": 512})
    job = client.put("/v1/requests/slurm-4712", json=other, headers={"prefer": "respond-async"})
    assert job.status_code == 202
    assert client.get("/v1/requests/slurm-4712").json()["job_id"] == job.json()["id"]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("explanation", "sentences"),
        ("explanation?brief=true", "sentences"),
        ("explanation?why_not=tp=2", "sentence"),
        ("timeline", "traceEvents"),
        ("memory", "stages"),
        ("sensitivity?changes=0.1", "tornado"),
        ("emissions", "files"),
        ("emissions?launcher=slurm", "manifest"),
    ],
)
def test_views_of_a_plan(client: TestClient, plan: dict[str, Any], path: str, key: str) -> None:
    address = f"/v1/plans/{plan['plan_id']}/{path}"
    first = client.get(address)
    assert first.status_code == 200, first.text
    assert first.json()[key]
    assert client.get(address).content == first.content


def test_launch_files_travel_as_a_zip(client: TestClient, plan: dict[str, Any]) -> None:
    address = f"/v1/plans/{plan['plan_id']}/emissions"
    files = client.get(address).json()["files"]
    archive = client.get(address, headers={"accept": "application/zip"})
    assert archive.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(archive.content)) as opened:
        assert set(opened.namelist()) == {*files, "manifest.json"}
        assert all(opened.read(name).decode() == text for name, text in files.items())
    problem(client.get(f"/v1/plans/{plan['plan_id']}/emissions/horovod"), 404, "not-found")
    problem(client.get(address, params={"backend": "megatron==0.0.1"}), 404, "not-found")
    problem(client.get(address, params={"backend": "../megatron"}), 422, "document-invalid")


def test_lists_are_paged_by_key_and_filtered(client: TestClient, plan: dict[str, Any]) -> None:
    for devices in (2, 4, 8):
        assert client.post("/v1/plans", json=question(devices=devices)).status_code in {200, 201}
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = client.get("/v1/plans", params={"limit": 2, **after}).json()
        seen += [each["plan_id"] for each in page["plans"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert len(seen) == len(set(seen)) >= 3
    whole = client.get("/v1/plans", params={"limit": 500}).json()["plans"]
    assert [each["plan_id"] for each in whole] == seen
    answers = client.get("/v1/plans", params={"problem_id": plan["problem_id"]}).json()["plans"]
    assert plan["plan_id"] in {each["plan_id"] for each in answers}
    assert client.get("/v1/plans", params={"model": "no\x00such"}).json()["plans"] == []
    assert {each["backend"] for each in whole} == {each["backend"] for each in whole if each["release"]}
    own = client.get("/v1/plans", params={"backend": plan["backend"], "limit": 500}).json()["plans"]
    assert plan["plan_id"] in {each["plan_id"] for each in own}
    assert {each["backend"] for each in own} == {plan["backend"]}
    assert client.get("/v1/plans", params={"backend": "nanotron"}).json()["plans"] == []


def test_an_estimate_is_the_plans_own_number(client: TestClient, plan: dict[str, Any]) -> None:
    strategy = {
        key: plan["strategy"][key] for key in ("tp", "pp", "cp", "dp_shard", "dp_replicate", "zero_stage", "sp")
    }
    strategy["mbs"] = plan["strategy"]["micro_batch_size"]
    for key in ("schedule", "recompute", "vpp", "overlap_tp", "axis_order"):
        strategy[key] = plan["strategy"][key]
    answer = client.post("/v1/estimates", json=question(strategy=strategy))
    assert answer.status_code == 200, answer.text
    assert answer.json()["fits"] is True
    assert answer.json()["plan"]["step_time_s"] == pytest.approx(plan["step_time_s"])
    wrong = client.post("/v1/estimates", json=question(strategy={"tp": 3}))
    found = problem(wrong, 422, "document-invalid")["errors"][0]
    assert (found["pointer"], found["also"]) == ("/strategy/tp", ["/devices"])
    unknown = client.post("/v1/estimates", json=question(strategy={"tq": 2, "zero_stage": 9}))
    pointers = {each["pointer"] for each in problem(unknown, 422, "document-invalid")["errors"]}
    assert pointers == {"/strategy/tq", "/strategy/zero_stage"}


@pytest.mark.parametrize("path", ["sensitivity?replan=true&changes=0.1", "explanation?why_not=tp=2,pp=2"])
def test_what_searches_keeps_no_estimate_waiting(client: TestClient, plan: dict[str, Any], path: str) -> None:
    (child,) = service_behind(client).searches._pool._idle
    with ThreadPoolExecutor(1) as threads:
        child.process.send_signal(signal.SIGSTOP)
        try:
            view = threads.submit(client.get, f"/v1/plans/{plan['plan_id']}/{path}")
            estimate = client.post(
                "/v1/estimates", json=question(strategy={"tp": 1}, scale={"nic_bandwidth": len(path)})
            )
            assert estimate.status_code == 200, estimate.text
            assert not view.done()
        finally:
            child.process.send_signal(signal.SIGCONT)
        assert view.result().status_code == 200


def test_throughput_is_one_row_for_each_allocation(client: TestClient) -> None:
    asked = {
        "model": question()["model"],
        "cluster": "dgx-a100-80g",
        "device_counts": [8, 4, 12, 16],
        "pools": [{"name": "newer", "cluster": "dgx-h100", "devices": 8}],
        "workload": WORKLOAD,
        "price_per_device_hour": 2.0,
        "budget_s": 30,
    }
    points = client.post("/v1/throughput", json=asked).json()["points"]
    assert [point["name"] for point in points] == ["newer", "8", "4", "12", "16"]
    fitting = {point["name"]: point for point in points if point["fits"]}
    assert set(fitting) == {"newer", "8", "4", "16"}
    assert "cannot have 12 devices" in next(point["reason"] for point in points if point["name"] == "12")
    for point in fitting.values():
        assert point["lower_bound_s"] <= point["step_time_s"]
        tokens = WORKLOAD["global_batch_size"] * WORKLOAD["sequence_length"]
        cost = 2.0 * point["num_devices"] * point["step_time_s"] / 3600 / tokens * 1e6
        assert point["cost_per_million_tokens"] == pytest.approx(cost)
        assert client.get(f"/v1/plans/{point['plan_id']}").status_code == 200
    problem(client.post("/v1/throughput", json={**asked, "device_counts": [], "pools": []}), 400, "request-refused")


def test_lost_nodes_give_a_new_plan_and_what_must_move(client: TestClient) -> None:
    old = client.post("/v1/plans", json=question(devices=16, top_k=0)).json()
    answer = client.post(f"/v1/plans/{old['plan_id']}:replan", json={"lost_nodes": [0]})
    assert answer.status_code == 200, answer.text
    new = answer.json()
    assert (new["devices_before"], new["devices_after"], new["devices_kept"]) == (16, 8, 8)
    moved = new["resharding"]
    assert moved["needed_bytes"] == moved["kept_bytes"] + moved["moved_bytes"]
    assert client.get(f"/v1/plans/{new['new_plan_id']}").json()["problem"]["cluster"]["pools"][0]["num_nodes"] == 1
    same = client.post(f"/v1/plans/{old['plan_id']}:replan", json={"devices": 16}).json()
    assert same["layout_kept"] is True
    assert same["resharding"]["moved_bytes"] == 0
    problem(client.post(f"/v1/plans/{old['plan_id']}:replan", json={"lost_nodes": [2]}), 422, "document-invalid")
    problem(client.post(f"/v1/plans/{old['plan_id']}:replan", json={}), 422, "document-invalid")
    problem(client.post(f"/v1/plans/{old['plan_id']}:replan", json={"lost_nodes": ["gpu1"]}), 422, "document-invalid")
    kept = client.post(f"/v1/plans/{old['plan_id']}:replan", json={"num_lost_nodes": 1, "prefer_layout": "keep"}).json()
    assert [each["name"] for each in kept["options"]] == ["keep"]


def test_a_replan_is_a_job_under_a_key_and_answers_once_it_has_ended(client: TestClient) -> None:
    asked = question(devices=16, top_k=0, workload={**WORKLOAD, "sequence_length": 1536})
    where = f"/v1/plans/{client.post('/v1/plans', json=asked).json()['plan_id']}:replan"
    headers = {"prefer": "respond-async", "idempotency-key": "lost-one"}
    first, again = (client.post(where, json={"lost_nodes": [1]}, headers=headers) for _ in range(2))
    assert first.status_code == 202
    assert again.status_code in {200, 202}
    with client.stream("GET", f"{first.headers['location']}/events") as stream:
        list(stream.iter_lines())
    answer = client.post(where, json={"lost_nodes": [1]}, headers=headers)
    assert answer.status_code == 200, answer.text
    fastest = next(each for each in answer.json()["options"] if each["name"] == "fastest")
    assert fastest["plan_id"] == client.get(first.headers["location"]).json()["result_plan_id"]
    problem(client.post(where, json={"lost_nodes": [0]}, headers=headers), 422, "key-reused")


def test_named_clusters_change_only_from_the_version_that_was_read(client: TestClient) -> None:
    built_in = client.get("/v1/clusters/dgx-a100-80g").json()["document"]
    address, new = "/v1/clusters/our-lab", {"if-none-match": "*"}
    problem(client.put(address, json=built_in), 428, "precondition-missing")
    made = client.put(address, json={**built_in, "name": "our-lab"}, headers=new)
    assert (made.status_code, made.json()["version"]) == (200, 1)
    problem(client.put(address, json=built_in, headers=new), 412, "precondition-failed")
    tag = client.get(address).headers["etag"]
    dearer = {**made.json()["document"], "price_per_device_hour": 4.0}
    changed = client.put(address, json=dearer, headers={"if-match": tag})
    assert changed.json()["version"] == 2
    problem(client.put(address, json=dearer, headers={"if-match": tag}), 412, "precondition-failed")
    assert client.get(address, headers={"if-none-match": changed.headers["etag"]}).status_code == 304
    asked = question(cluster="our-lab")
    plan = client.post("/v1/plans", json=asked).json()
    assert plan["problem"]["cluster"]["price_per_device_hour"] == 4.0
    # The name may mean something else now: the same spelling must not get yesterday's answer.
    client.put(address, json={**dearer, "price_per_device_hour": 5.0}, headers={"if-match": changed.headers["etag"]})
    assert client.post("/v1/plans", json=asked).json()["problem"]["cluster"]["price_per_device_hour"] == 5.0
    problem(client.put("/v1/clusters/dgx-h100", json=built_in, headers=new), 409, "conflict")
    broken = client.put("/v1/clusters/broken", json={"name": "x", "pools": [{}]}, headers=new)
    assert problem(broken, 422, "document-invalid")["errors"][0]["pointer"].startswith("/cluster/pools/0")


def test_named_models_and_the_catalogue(client: TestClient) -> None:
    config = builtin_document("llama-3.1-8b")["hf_config"]
    made = client.put("/v1/models/our-llama", json=config, headers={"if-none-match": "*"})
    assert made.status_code == 200, made.text
    rows = {row["name"]: row for row in client.get("/v1/models").json()["items"]}
    assert rows["our-llama"]["parameters"] == rows["llama-3.1-8b"]["parameters"]
    assert (rows["our-llama"]["builtin"], rows["llama-3.1-8b"]["builtin"]) == (False, True)
    assert "dgx-h100" in {row["name"] for row in client.get("/v1/clusters").json()["items"]}
    names = [row["name"] for row in client.get("/v1/devices").json()["items"]]
    assert client.get(f"/v1/devices/{names[0]}").json()["name"] == names[0]
    problem(client.get("/v1/models/nothing"), 404, "not-found")
    problem(
        client.put("/v1/profiles/mine", json={"profile_id": "abcd"}, headers={"if-none-match": "*"}), 404, "not-found"
    )


def test_those_who_run_the_service_can_look(client: TestClient) -> None:
    assert client.get("/livez").json() == {"status": "ok", "checks": {}}
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["database"]) == (200, "ok")
    assert "meshwright_http_requests_total" in client.get("/metrics").text
    assert client.get("/version").json()["schema_revision"]
    assert client.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_errors_of_http_itself_are_problems_too(client: TestClient) -> None:
    problem(client.get("/nothing"), 404, "not-found")
    refused = client.delete("/v1/plans")
    problem(refused, 405, "method-not-allowed")
    assert refused.headers["allow"] == "GET, HEAD, POST"
    problem(client.get("/v1/plans", params={"limit": 0}), 422, "document-invalid")
    problem(client.get("/v1/plans/..%2f..%2fetc"), 404, "not-found")
    mine = client.get("/livez", headers={"x-request-id": "job-7.retry_1"})
    assert mine.headers["x-request-id"] == "job-7.retry_1"
    assert client.get("/livez", headers={"x-request-id": "a b"}).headers["x-request-id"] != "a b"
