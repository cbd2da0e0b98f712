"""Plans over pools, for towers, steps of RL and serving: the answer, and one clear error for what cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from planner.operations.pools import POOLS
from planner.operations.rl import RL_PLAN
from planner.operations.serving import SERVING_ESTIMATE, SERVING_PLAN, ServingEstimate
from planner.operations.towers import TOWERS
from planner.plan.plan import Plan
from planner.rl.plan import RankedRl, RlPlan
from planner.search.towers.plan import TowersPlan
from planner.serving.plan import ServingPlan
from tests.board_in_memory import MemoryBoard
from tests.running_service import service


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    database = f"sqlite:///{tmp_path_factory.mktemp('pools') / 'plans.db'}"
    with service(database, MemoryBoard(database, paused=True), synchronous_s=120, most_devices=64) as found:
        yield found


@pytest.mark.slow
def test_the_plan_comes_with_the_files_of_its_launcher(client: TestClient) -> None:
    answer = client.post("/v1/pools-plans", json=dict(POOLS.example))
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said["plan"]["backend"] == "native"
    emission = said["emission"]
    assert "#SBATCH hetjob" in emission["files"]["job.sbatch"]
    plan = Plan.model_validate_json(emission["files"]["plan.json"])
    assert plan.plan_id == said["plan_id"] == emission["plan_id"] == emission["manifest"]["plan_id"]
    # It is stored as any plan, and its files are written from there as well.
    assert client.get(f"/v1/plans/{plan.plan_id[:12]}").json()["plan_id"] == plan.plan_id
    assert [each["plan_id"] for each in client.get("/v1/plans").json()["plans"]] == [plan.plan_id]
    again = client.post(f"/v1/plans/{plan.plan_id}/emissions", json={"launcher": "slurm"}).json()
    assert again["files"] == emission["files"]
    assert "/v1/pools-plans" in {each["route"] for each in client.get("/v1/audit").json()["events"]}
    why = client.get(f"/v1/plans/{plan.plan_id}/explanation")
    assert why.status_code == 200, why.text
    assert why.json()["headline"]
    assert plan.problem.cluster.num_devices == plan.chosen().world_size


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"constraints": {"backends": ["megatron"]}}, 422, "unequal devices"),
        ({"constraints": {}}, 422, "no back-end runs"),
        ({"model": "no-such-model"}, 404, "no model"),
        ({"pools": []}, 422, "at least 1"),
        ({"pools": [{"cluster": "dgx-h100", "devices": 64}, {"cluster": "dgx-a100-40g", "devices": 8}]}, 422, "64"),
    ],
)
def test_what_cannot_be_gets_one_clear_error(
    client: TestClient, changes: dict[str, Any], status: int, said: str
) -> None:
    answer = client.post("/v1/pools-plans", json={**POOLS.example, **changes})
    assert answer.status_code == status, answer.text
    assert said in answer.json()["detail"]


@pytest.mark.budget(20)
def test_a_step_of_rl(client: TestClient) -> None:
    answer = client.post("/v1/rl-plans", json=dict(RL_PLAN.example))
    assert answer.status_code == 200, answer.text
    best = RlPlan.model_validate_json(answer.text).best
    assert best.deployment.num_devices == 8
    layout = {"placement": "colocated", "rollout_tp": best.deployment.rollout.layout.tp}
    estimate = client.post("/v1/rl-estimates", json={**RL_PLAN.example, **layout})
    assert RankedRl.model_validate_json(estimate.text).prediction.step_s == pytest.approx(best.prediction.step_s)
    refused = client.post("/v1/rl-plans", json={**RL_PLAN.example, "mini_batches": 7})
    assert refused.status_code == 422
    assert "does not divide" in refused.json()["detail"]


def test_the_places_of_a_tower(client: TestClient) -> None:
    answer = client.post("/v1/towers-plans", json=dict(TOWERS.example))
    assert answer.status_code == 200, answer.text
    said = TowersPlan.model_validate_json(answer.text)
    assert said.best.step_time_s == min(place.step_time_s for place in said.places)
    refused = client.post("/v1/towers-plans", json={**TOWERS.example, "model": "llama-3.1-8b"})
    assert refused.status_code == 422
    assert "has no vision tower" in refused.json()["detail"]


def test_a_deployment_that_serves(client: TestClient) -> None:
    asked = {**SERVING_PLAN.example, "model": "llama-3.1-8b", "devices": 1, "constraints": {"engines": ["vllm"]}}
    answer = client.post("/v1/serving/plans", json=asked)
    assert answer.status_code == 200, answer.text
    said = ServingPlan.model_validate_json(answer.text)
    assert said.best.meets
    own = {**SERVING_ESTIMATE.example, **asked, "groups": [{"layout": {"tp": 1}}]}
    estimate = ServingEstimate.model_validate_json(client.post("/v1/serving/estimates", json=own).text)
    assert estimate.line.prediction.fits
    refused = client.post("/v1/serving/plans", json={**asked, "objective": "fewest_devices"})
    assert refused.status_code == 422
    assert "needs requests_per_s" in refused.json()["detail"]
