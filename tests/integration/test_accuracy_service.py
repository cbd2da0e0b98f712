"""Reports on accuracy over HTTP, on both databases: the built-in one, uploaded ones, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from planner.evidence.accuracy.report_document import published_report
from tests.command_line import REPOSITORY, run_here
from tests.running_service import service

NEW = {"if-none-match": "*"}


@pytest.fixture
def client(database_url: str) -> Iterator[TestClient]:
    with service(database_url) as found:
        yield found


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What the command prints, calibrated, so that every field of a row is there."""
    rows = REPOSITORY / "benchmarks" / "published" / "training_runs.csv"
    ran = run_here("accuracy", str(rows), "--calibrate-fraction", "0.5", "--by", "model", "-o", "json", "--quiet")
    assert ran.exit_code == 0, ran.stderr
    found: dict[str, Any] = ran.json()
    return found


def test_a_release_brings_a_report(client: TestClient) -> None:
    (summary,) = client.get("/v1/accuracy").json()["reports"]
    assert (summary["name"], summary["builtin"], summary["num_rows"]) == (
        "published",
        True,
        len(published_report().rows),
    )
    assert [set(summary["groups"])] == [{"source", "device", "model"}]
    assert summary["groups"]["source"][-1]["group"] == "all"
    whole = client.get("/v1/accuracy/published")
    assert whole.headers["etag"] == f'"{summary["sha"]}"'
    rows = whole.json()["document"]["rows"]
    assert {"predicted_step_time_s", "measured_step_time_s", "interval", "model", "device"} <= set(rows[0])
    same = client.get("/v1/accuracy/published", headers={"if-none-match": whole.headers["etag"]})
    assert same.status_code == 304


def test_what_the_command_prints_can_be_kept_and_replaced(client: TestClient, report: dict[str, Any]) -> None:
    kept = client.put("/v1/accuracy/ours", json=report, headers=NEW)
    assert kept.status_code == 200, kept.text
    found = client.get("/v1/accuracy/ours")
    assert found.json() == kept.json()
    document = found.json()["document"]
    assert {name: document[name] for name in report} == report
    summaries = {each["name"]: each for each in client.get("/v1/accuracy").json()["reports"]}
    ours = summaries["ours"]
    assert (ours["version"], ours["builtin"]) == (1, False)
    all_runs = ours["groups"]["model"][-1]
    theirs = next(each for each in report["groups"] if each["group"] == "all")
    assert all_runs["median_ape"] == pytest.approx(theirs["median_ape"])
    assert client.put("/v1/accuracy/ours", json=report).status_code == 428
    assert client.put("/v1/accuracy/ours", json=report, headers=NEW).status_code == 412
    fewer = {**report, "rows": report["rows"][:3]}
    again = client.put("/v1/accuracy/ours", json=fewer, headers={"if-match": kept.headers["etag"]})
    assert (again.status_code, again.json()["version"]) == (200, 2)
    assert {each["name"]: each["num_rows"] for each in client.get("/v1/accuracy").json()["reports"]}["ours"] == 3


def test_what_is_no_report_is_refused_with_its_place(client: TestClient, report: dict[str, Any]) -> None:
    row = report["rows"][0]
    for change, pointer in (
        ({"predicted_step_time_s": -1.0}, "/rows/0/predicted_step_time_s"),
        ({"interval": [2.0, 1.0]}, "/rows/0"),
        ({"wish": 1}, "/rows/0/wish"),
    ):
        response = client.put("/v1/accuracy/wrong", json={**report, "rows": [{**row, **change}]}, headers=NEW)
        assert response.status_code == 422
        assert [each["pointer"] for each in response.json()["errors"]] == [pointer]
    assert client.get("/v1/accuracy/wrong").status_code == 404
    assert client.put("/v1/accuracy/published", json=report, headers=NEW).status_code == 409


def test_a_report_may_be_larger_than_a_question(database_url: str, report: dict[str, Any]) -> None:
    with service(database_url, body_limit_bytes=100, profile_limit_bytes=50_000) as client:
        assert client.put("/v1/accuracy/ours", json=report, headers=NEW).status_code == 200
        many = {**report, "rows": report["rows"] * 20}
        assert client.put("/v1/accuracy/many", json=many, headers=NEW).status_code == 413
