"""What is wrong with a question or a strategy is said at once, each fault beside the field that caused it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.running_service import problem, question, service


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("service")
    with service(f"sqlite:///{folder / 'plans.db'}") as found:
        yield found


def refused(client: TestClient, strategy: dict[str, Any], **more: Any) -> dict[str, list[str]]:
    """Pointer of each finding of an estimate -> the other fields of its rule."""
    answer = client.post("/v1/estimates", json=question(strategy=strategy, **more))
    errors = problem(answer, 422, "document-invalid")["errors"]
    return {each["pointer"]: each.get("also", []) for each in errors}


def test_a_rule_is_broken_beside_the_fields_that_were_given(client: TestClient) -> None:
    illegal = refused(client, {"tp": 2, "ep": 3, "vpp": 2})
    assert illegal == {"/strategy/ep": ["/strategy/tp"], "/strategy/vpp": []}
    assert refused(client, {"tp": 8, "dp": 2}) == {"/strategy/tp": ["/strategy/dp", "/devices"]}
    free = {"constraints": {"backends": ["unrestricted"]}}
    assert refused(client, {"sp": True}, **free) == {"/strategy/sp": []}
    backend = {"constraints": {"backends": ["megatron"]}}
    unreduced = {"tp": 2, "zero_stage": 1, "overlap_param_gather": True, "overlap_grad_reduce": False}
    assert refused(client, unreduced, **backend) == {
        "/strategy/overlap_param_gather": ["/strategy/overlap_grad_reduce", "/constraints/backends"]
    }


@pytest.mark.parametrize("backend", ["any", "unrestricted", "megatron", "deepspeed", "torchtitan", "native"])
@pytest.mark.parametrize("layers", [[1, 2, 3], [3, 3], [5, -1]])
def test_wrong_counts_of_layers_stand_beside_the_layers(client: TestClient, backend: str, layers: list[int]) -> None:
    asked = {"constraints": {"backends": [backend]}, "chunk_layers": layers}
    assert refused(client, {"tp": 2, "pp": 2, "zero_stage": 0}, **asked) == {"/chunk_layers": []}


def test_a_dealing_that_a_back_end_refuses_stands_beside_the_layers(client: TestClient) -> None:
    """Its rule is about stages that hold nothing; otherwise dealt the same strategy runs."""
    asked = {"constraints": {"backends": ["deepspeed"]}}
    strategy = {"pp": 4, "dp": 2}
    assert refused(client, strategy, chunk_layers=[2, 0, 1, 1], **asked) == {"/chunk_layers": ["/constraints/backends"]}
    even = question(strategy=strategy, chunk_layers=[1, 1, 1, 1], **asked)
    assert client.post("/v1/estimates", json=even).status_code == 200


def test_what_was_typed_is_refused_field_by_field(client: TestClient) -> None:
    plan = client.post("/v1/plans", json=question()).json()
    read = client.post("/v1/strategies:read", json={"text": "tpp=8\npp=0, sp=maybe\ncp=2"})
    errors = problem(read, 422, "document-invalid")["errors"]
    assert [each["pointer"] for each in errors] == ["/text/tpp", "/text/pp", "/text/sp"]
    assert all(each["hint"] for each in errors)
    asked = client.get(f"/v1/plans/{plan['plan_id']}/explanation", params={"why_not": "tp=0,zero=9"})
    errors = problem(asked, 422, "document-invalid")["errors"]
    assert [each["pointer"] for each in errors] == ["why_not/tp", "why_not/zero"]


def test_a_pin_of_what_is_forbidden_is_refused_before_any_search(client: TestClient) -> None:
    asked = question(constraints={"pins": {"cp": 2}, "forbids": ["cp"]})
    checked = client.post("/v1/problems:check", json=asked).json()
    assert [(each["pointer"], each["also"]) for each in checked["findings"]] == [
        ("/constraints/pins/cp", ["/constraints/forbids"])
    ]
    made = client.post("/v1/plans", json=question(constraints={"forbids": ["cp"]})).json()
    wished = client.get(f"/v1/plans/{made['plan_id']}/explanation", params={"why_not": "cp=2"})
    assert problem(wished, 422, "document-invalid")["errors"][0]["pointer"] == "why_not/cp"


def test_a_check_gives_all_findings_at_once(client: TestClient) -> None:
    good = client.post("/v1/problems:check", json=question()).json()
    assert (good["ok"], good["num_devices"]) == (True, 8)
    bad = client.post("/v1/problems:check", json=question(model="lama-3.1-8b", cluster="dgx-h1000")).json()
    assert {each["pointer"] for each in bad["findings"]} == {"/model", "/cluster"}
    assert all(each["hint"] for each in bad["findings"])
    names = {"constraints": {"backends": ["megatron", "torchtitan==9", "deepsped"]}}
    unknown = client.post("/v1/problems:check", json=question(**names)).json()["findings"]
    assert [each["pointer"] for each in unknown] == ["/constraints/backends/1", "/constraints/backends/2"]
    assert "0.3.0" in unknown[0]["hint"]
    assert unknown[1]["hint"] == "did you mean 'deepspeed'?"
    odd = client.post("/v1/problems:check", json={"model": 7, "extra": 1}).json()
    assert {"/model", "/cluster", "/workload", "/extra"} == {each["pointer"] for each in odd["findings"]}


def test_a_question_that_no_backend_runs_is_told_so_back_end_by_back_end(client: TestClient) -> None:
    asked = question(constraints={"backends": ["mindspeed"]})
    alone = client.post("/v1/problems:check", json=asked).json()
    assert {each["pointer"] for each in alone["findings"]} == {"/constraints/backends/0"}
    assert "Huawei" in alone["findings"][0]["detail"]
    refused = problem(client.post("/v1/plans", json=asked), 422, "no-feasible-plan")
    assert "mindspeed" in refused["detail"]
    # One that can is enough.
    both = question(constraints={"backends": ["mindspeed", "megatron"]})
    assert client.post("/v1/problems:check", json=both).json()["ok"]
    rows = client.post("/v1/plans", json=both).json()["backends"]
    assert [each["backend"] for each in rows] == ["megatron", "mindspeed"]
    assert "Huawei" in rows[1]["reason"]


def test_bounds_hold_for_the_plan_and_say_what_cannot_fit(client: TestClient) -> None:
    bounds = client.post("/v1/problems:bound", json=question()).json()
    plan = client.post("/v1/plans", json=question()).json()
    assert bounds["may_fit"]
    assert 0 < bounds["least_step_s"] <= plan["step_time_s"]
    found = {each["backend"]: each["step_time_s"] for each in plan["backends"] if each["step_time_s"] is not None}
    assert {each["backend"] for each in bounds["backends"]} == set(found)
    assert all(each["least_step_s"] <= found[each["backend"]] for each in bounds["backends"])
    large = {"model": "llama-3.1-70b", "cluster": "dgx-h100", "devices": 2}
    none = client.post("/v1/problems:bound", json=question(**large)).json()
    assert (none["may_fit"], none["least_step_s"]) == (False, None)
    assert {each["may_fit"] for each in none["backends"]} == {False}
    odd = client.post("/v1/problems:bound", json=question(model="llama-3.1-70b", cluster="dgx-h100", devices=48)).json()
    # Copies alone deal a batch of 16 to no 48 devices.
    assert {each["backend"]: each["may_fit"] for each in odd["backends"]}["accelerate"] is False
    refused = client.post("/v1/problems:bound", json=question(model="lama"))
    assert problem(refused, 404, "not-found")
