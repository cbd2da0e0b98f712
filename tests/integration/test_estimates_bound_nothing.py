"""An estimate says everywhere that no bound is known, also one that an earlier release stored.

``tests/golden/documents/v2`` holds an estimate of the last release that called its step time the lower bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.client.stored_plans import read_plan
from planner.answers.explain.why import explain
from planner.operations.plan_reference import load_plan
from planner.plan.plan import Plan
from planner.plan.recommendation import UNSEARCHED
from planner.store import open_store
from profiles.document import canonical_json
from tests.command_line import run_here
from tests.plan_factory import make_plan
from tests.running_service import service

OLD = Path(__file__).parents[1] / "golden" / "documents" / "v2" / "estimate.json"
OLD_ID = "b4a2d0f1e63b1971edb42ee047cc3292327810599b79e8b4e417e960a09ec8da"
TEXT = OLD.read_text(encoding="utf-8").removesuffix("\n")
QUESTION = (
    *("--model", "llama-3.2-1b", "--cluster", "dgx-a100-80g", "--devices", "8", "--global-batch-size", "64"),
    *("--sequence-length", "4096", "--profile", "none", "--backend", "megatron,torchtitan"),
    *("-s", "dp=8,zero_stage=1"),
)


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "plans.db")


@pytest.fixture
def client(address: str) -> Iterator[TestClient]:
    with service(address) as client:
        yield client


def test_an_old_estimate_is_read_under_its_id_without_its_bound(tmp_path: Path) -> None:
    written = json.loads(TEXT)
    assert (written["lower_bound_s"], written["gap"]) == (written["step_time_s"], 0.0)
    plan = Plan.model_validate_json(TEXT)
    assert (plan.plan_id, plan.lower_bound_s, plan.gap, plan.bound) == (OLD_ID, None, None, None)
    assert canonical_json(plan.written()) == TEXT
    assert explain(plan, with_neighbours=False).sentences[0] == UNSEARCHED
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"plan_id": OLD_ID, **written}), encoding="utf-8")
    assert load_plan(str(file)).bound is None


def test_an_estimate_of_today_differs_in_what_it_does_not_know(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    done = run_here("estimate", *QUESTION, "-o", "json", "--quiet", "--plan-out", str(file))
    assert done.exit_code == 0, done.stderr
    for told in (done.json(), json.loads(file.read_text(encoding="utf-8"))):
        assert (told["lower_bound_s"], told["gap"]) == (None, None)
        assert [(row["lower_bound_s"], row["gap"]) for row in told["backends"]] == [(None, None)] * 2
    assert not load_plan(str(file)).is_searched


def test_estimates_are_stored_and_listed_without_a_bound(address: str, client: TestClient) -> None:
    old = Plan.model_validate_json(TEXT)
    made = old.model_copy(update={"assumptions": ("made today",)})
    with open_store(address) as store:
        ids = {store.save_plan(plan) for plan in (old, made)}
        assert ids == {OLD_ID, made.plan_id}
        assert {(each.status, each.outcome, each.gap) for each in store.list_plans(limit=9)} == {
            ("feasible", "feasible", None)
        }
        assert store.get_plan(OLD_ID).bound is None
        assert store.plan_text(OLD_ID).body == TEXT
    for rows in (
        client.get("/v1/plans").json()["plans"],
        run_here("plans", "list", "--database", address, "-o", "json").json(),
    ):
        assert {row["plan_id"]: row["gap"] for row in rows} == dict.fromkeys(ids)
    assert "0.0 %" not in run_here("plans", "list", "--database", address).stdout


def test_the_service_tells_an_old_estimate_as_it_is_read_today(address: str, client: TestClient) -> None:
    with open_store(address) as store:
        store.save_plan(Plan.model_validate_json(TEXT))
        searched = store.save_plan(make_plan(), 0.1)
    answer = client.get(f"/v1/plans/{OLD_ID}")
    told = answer.json()
    assert (told["plan_id"], told["upgraded_from"], told["lower_bound_s"], told["gap"]) == (OLD_ID, 2, None, None)
    assert read_plan(answer.content).plan_id == OLD_ID
    assert "upgraded_from" not in client.get(f"/v1/plans/{searched}").json()
