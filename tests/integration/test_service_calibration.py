"""A question may carry a calibration: as a plan has it, as its whole document, or by the id of one on the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.client.question_body import body_of
from planner.backends import megatron
from planner.backends.registry import with_files
from planner.evidence.calibration.document import Calibration
from planner.evidence.calibration.folder import calibrations_folder, keep
from planner.question.factors import Factors
from planner.question.problem import Problem
from tests.board_in_memory import MemoryBoard
from tests.running_service import question, service

SLOW = Calibration(
    framework="our fork",
    framework_version="1.2",
    device="a100-sxm4-80gb",
    traits=megatron.BACKEND.releases[0].physics.name,
    factors=Factors(compute=1.6),
    software="0",
    created_at="2026-01-01T00:00:00Z",
)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's folder of profiles, with the calibration in it."""
    folder = tmp_path_factory.mktemp("profiles")
    keep(SLOW, calibrations_folder(str(folder)))
    return folder


@pytest.fixture(autouse=True)
def _profiles_of_the_server(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHWRIGHT_PROFILES", str(profiles))


@pytest.fixture(scope="module")
def client(profiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MESHWRIGHT_PROFILES", str(profiles))
        database = f"sqlite:///{tmp_path_factory.mktemp('calibrated') / 'plans.db'}"
        with service(database, MemoryBoard(database)) as running:
            yield running


@pytest.fixture(scope="module")
def plan(client: TestClient) -> dict[str, Any]:
    """The best plan under the calibration, asked for by its id."""
    answer = client.post("/v1/plans", json=question(calibration=SLOW.calibration_id[:12]))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_three_ways_to_say_it_are_one_question(client: TestClient, plan: dict[str, Any]) -> None:
    carried = plan["problem"]["calibration"]
    assert carried == SLOW.applied().model_dump(mode="json")
    plain = client.post("/v1/plans", json=question()).json()
    assert plan["plan_id"] != plain["plan_id"]
    assert plan["step_time_s"] > plain["step_time_s"]
    for part in (SLOW.model_dump(mode="json"), SLOW.calibration_id):
        assert client.post("/v1/plans", json=question(calibration=part)).json()["plan_id"] == plan["plan_id"]
    # What a plan carries of it says no physics; the plan's own constraints have the back-ends that it corrects.
    again = question(calibration=carried, constraints=plan["problem"]["constraints"])
    assert client.post("/v1/plans", json=again).json()["plan_id"] == plan["plan_id"]


def test_any_means_the_backends_that_it_corrects(client: TestClient, plan: dict[str, Any]) -> None:
    asked = plan["problem"]["constraints"]["backends"]
    assert asked == [each.name for each in with_files() if each.releases[0].physics.name == SLOW.traits]
    named = question(calibration=SLOW.calibration_id, constraints={"backends": ["megatron"]})
    assert client.post("/v1/plans", json=named).json()["backend"] == "megatron"


def test_everything_asked_of_the_plan_uses_it(client: TestClient, plan: dict[str, Any]) -> None:
    # As the pages do: the plan's own problem, part by part.
    again = {**body_of(Problem.model_validate(plan["problem"])), "strategy": {}}
    strategy = {key: value for key, value in plan["strategy"].items() if key not in {"dp", "recompute_modules"}}
    estimate = client.post("/v1/estimates", json={**again, "strategy": strategy}).json()
    assert estimate["plan"]["step_time_s"] == pytest.approx(plan["step_time_s"])
    del again["strategy"]
    pinned = {**again, "constraints": {"pins": {"pp": 1}}}
    other = client.post("/v1/plans", json=pinned).json()
    assert other["problem"]["calibration"] == plan["problem"]["calibration"]
    address = f"/v1/plans/{plan['plan_id']}"
    wished = client.get(f"{address}/explanation", params={"why_not": "tp=2,pp=2"}).json()
    assert wished["other"]["problem"]["calibration"] == plan["problem"]["calibration"]
    assert client.get(f"{address}/sensitivity").json()["step_time_s"] == pytest.approx(plan["step_time_s"])


@pytest.mark.parametrize(
    ("changes", "status", "pointer", "what"),
    [
        ({"calibration": "abcdef"}, 404, "/calibration", "there is no calibration"),
        ({"calibration": "my file.json"}, 422, "/calibration", "pattern"),
        ({"calibration": {"factors": {}}}, 422, "/calibration/framework", ""),
        ({"calibration": {**SLOW.applied().model_dump(mode="json"), "factors": {"compute": 99}}}, 422, None, "4"),
        ({"calibration": SLOW.calibration_id, "cluster": "dgx-h100"}, 409, "/calibration", "the cluster has h100"),
        (
            {"calibration": SLOW.calibration_id, "constraints": {"backends": ["megatron", "torchtitan"]}},
            *(409, "/calibration", "this problem's back-end has torchtitan"),
        ),
        # As requests of earlier releases say it.
        ({"calibration": SLOW.calibration_id, "framework": "nanotron"}, 409, "/calibration", "back-end has nanotron"),
    ],
)
def test_one_that_does_not_fit_is_refused_where_it_stands(
    client: TestClient, changes: dict[str, Any], status: int, pointer: str | None, what: str
) -> None:
    answer = client.post("/v1/plans", json=question(**changes))
    assert answer.status_code == status, answer.text
    found = answer.json()["errors"][0]
    assert found["pointer"] == (pointer or "/calibration/factors/compute")
    assert what in found["detail"]
    checked = client.post("/v1/problems:check", json=question(**changes)).json()
    assert found["pointer"] in {each["pointer"] for each in checked["findings"]}


def test_a_command_asks_a_service_with_a_calibration(tmp_path: Path) -> None:
    from planner.cli.remote_question import calibration_part

    file = tmp_path / "slow.json"
    file.write_text(SLOW.model_dump_json())
    assert calibration_part(str(file)) == {"calibration": SLOW.model_dump(mode="json")}
    assert calibration_part("abcdef012345") == {"calibration": "abcdef012345"}
    assert calibration_part(None) == {}
