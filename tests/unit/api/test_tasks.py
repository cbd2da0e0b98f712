"""What a computing process answers, whatever happens in it: the planner's own numbers, or one clear outcome."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from api.jobs.board import PlanRequest
from api.solving import child
from api.solving.messages import Message
from api.solving.watch import Watch
from planner.errors import NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model

PROBLEM = Problem(
    model=make_model(4),
    cluster=load_cluster("dgx-a100-80g", 8),
    workload=Workload(global_batch_size=16, sequence_length=2048),
)
REQUEST = PlanRequest(problem=PROBLEM, top_k=0).model_dump(mode="json")


def answer(task: str, payload: dict[str, Any], seconds: float) -> Message:
    return child.answer(task, payload, Watch(seconds, threading.Event(), lambda _: None))


def test_a_plan_is_the_planners() -> None:
    outcome, content, wall_s = answer("plan", REQUEST, 60)
    assert 0 < wall_s < 60
    assert (outcome, content.decode()) == ("done", find_plan(PROBLEM, SearchOptions(top_k=0)).canonical_json())


@pytest.mark.parametrize("lie", [{"step_time_s": 1e-6}, {"peak_memory_bytes": 1}, {"problem": "another"}])
def test_an_engine_that_lies_is_never_believed(monkeypatch: pytest.MonkeyPatch, lie: dict[str, Any]) -> None:
    honest = find_plan(PROBLEM, SearchOptions(top_k=0))
    if "problem" in lie:
        other = PROBLEM.constraints.model_copy(update={"backends": ("nemo",)})
        lie = {"problem": PROBLEM.model_copy(update={"constraints": other})}
    monkeypatch.setattr("planner.search.find.find_plan", lambda *_: honest.model_copy(update=lie))
    outcome, content, _ = answer("plan", REQUEST, 60)
    assert (outcome, json.loads(content)["slug"]) == ("refused", "solver-inconsistent")


@pytest.mark.parametrize(
    ("error", "outcome", "slug"),
    [
        (NoFeasiblePlan("nothing fits", binding="memory"), "refused", "no-feasible-plan"),
        (MemoryError(), "refused", "solver-out-of-memory"),
        (OverflowError(), "refused", "document-invalid"),
        (RuntimeError("a bug"), "bug", None),
    ],
)
def test_every_failure_is_an_outcome(
    monkeypatch: pytest.MonkeyPatch, error: Exception, outcome: str, slug: str | None
) -> None:
    def fail(*_: object) -> Plan:
        raise error

    monkeypatch.setattr("planner.search.find.find_plan", fail)
    found, content, _ = answer("plan", REQUEST, 60)
    assert found == outcome
    assert (content.decode() if slug is None else json.loads(content)["slug"]) == (slug or "RuntimeError: a bug")


def test_a_search_past_its_time_is_late() -> None:
    assert answer("plan", REQUEST, -1) == Message("late")


def test_a_quick_plan_is_proved_too() -> None:
    outcome, content, _ = answer("quick_plan", {"problem": PROBLEM.model_dump(mode="json"), "most_s": 30}, 60)
    assert (outcome, Plan.model_validate_json(content).problem) == ("done", PROBLEM)
