"""A measured profile gets a name over HTTP, and a plan that leans on it."""

from __future__ import annotations

import pytest

from planner.question.problem import Problem, Workload
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster
from tests.measured_problems import random_profile
from tests.plan_factory import make_model
from tests.running_service import question, service


def test_a_profile_is_named_and_questions_lean_on_it(database_url: str) -> None:
    problem = Problem(
        model=make_model(4),
        cluster=scale_cluster(load_cluster("dgx-a100-80g"), 8),
        workload=Workload(global_batch_size=16, sequence_length=2048),
    )
    reference = random_profile(problem, 1)
    with service(database_url) as client:
        named = client.put(
            "/v1/profiles/lab", json={"profile_id": reference.profile_id[:16]}, headers={"if-none-match": "*"}
        )
        assert named.status_code == 200, named.text
        assert named.json()["document"] == reference.model_dump(mode="json")
        assert client.get("/v1/profiles/lab").headers["etag"] == named.headers["etag"]
        assert [each["name"] for each in client.get("/v1/profiles").json()["items"]] == ["lab"]
        again = client.put(
            "/v1/profiles/lab",
            json={"profile_id": reference.profile_id},
            headers={"if-match": named.headers["etag"]},
        )
        assert (again.status_code, again.json()["version"]) == (200, 1), "the same is no new version"
        measured = client.post("/v1/plans", json=question(profile="lab"))
        assert measured.status_code == 200, measured.text
        assert measured.json()["problem"]["profile"]["profile_id"] == reference.profile_id
        guessed = client.post("/v1/plans", json=question())
        assert guessed.json()["step_time_s"] != pytest.approx(measured.json()["step_time_s"], rel=1e-3)
        trail = client.get("/v1/audit", params={"phase": "begun"}).json()["events"]
        assert "/v1/profiles/{name}" in {each["route"] for each in trail}
        unknown = client.put("/v1/profiles/other", json={"profile_id": "0" * 16}, headers={"if-none-match": "*"})
        assert unknown.status_code in {404, 422}
