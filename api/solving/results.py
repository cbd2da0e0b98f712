"""What a job asks of a solver, and what is kept of the answer: a plan, or a fleet with the plans of its speeds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from api.jobs.board import FleetRequest, JobRequest, PlanRequest
from api.wire.jobs import JobProgress, ResultKind
from planner.answers.fleet.answer import Fleet
from planner.plan.plan import Plan
from planner.search.recheck import recheck_plan
from planner.store.repository import Store


@dataclass(frozen=True, slots=True)
class Kept:
    """What is stored, as an outcome names it."""

    result_kind: ResultKind
    plan_id: str | None = None
    fleet_id: str | None = None


class Found(Protocol):
    """An answer of a solver that was checked."""

    @property
    def progress(self) -> JobProgress:
        """How far the search came."""
        ...

    def save(self, store: Store, wall_s: float) -> Kept:
        """Store it.  Raises StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan."""

    plan: Plan

    @property
    def progress(self) -> JobProgress:
        """How far the search came."""
        return JobProgress(
            phase="storing",
            bounded=self.plan.search.bounded,
            evaluated=self.plan.search.evaluated,
            incumbent_s=self.plan.step_time_s,
            bound_s=self.plan.lower_bound_s,
            gap=self.plan.gap,
        )

    def save(self, store: Store, wall_s: float) -> Kept:
        """Store it.  Raises StoreError."""
        return Kept("plan", plan_id=store.save_plan(self.plan, wall_s))


@dataclass(frozen=True, slots=True)
class FoundFleet:
    """A fleet, and the plans that its speeds are of."""

    fleet: Fleet
    plans: tuple[Plan, ...]

    @property
    def progress(self) -> JobProgress:
        """How far the search came."""
        sizes = sum(len(curve.rows) for curve in self.fleet.curves)
        worst = max((goal.gap for goal in self.fleet.goals), default=0.0)
        return JobProgress(phase="storing", done=sizes - self.fleet.undecided, wanted=sizes, gap=worst)

    def save(self, store: Store, wall_s: float) -> Kept:
        """Store it.  Raises StoreError."""
        for plan in self.plans:
            # No search of its own: a plan of a curve has no runners-up.
            store.save_plan(plan)
        return Kept("fleet", fleet_id=store.save_fleet(self.fleet))


def task_of(request: JobRequest) -> tuple[str, dict[str, Any]]:
    """What a computing process is asked (``api.solving.tasks``)."""
    name = "plan" if isinstance(request, PlanRequest) else "fleet"
    return name, request.model_dump(mode="json")


def stored_result(request: JobRequest, store: Store) -> Kept | None:
    """A stored answer that no search could better.  Raises StoreError."""
    if isinstance(request, FleetRequest):
        return None
    text = store.find_answer(request.problem.problem_id)
    return None if text is None or not text.answers(request.top_k) else Kept("plan", plan_id=text.plan_id)


def checked(request: JobRequest, content: bytes) -> Found:
    """The answer, recomputed from its own decisions.  Raises CheckFailed, ValueError."""
    if isinstance(request, PlanRequest):
        plan = Plan.model_validate_json(content)
        recheck_plan(plan, request.problem)
        return FoundPlan(plan)
    return read_fleet(content)


def read_fleet(content: bytes) -> FoundFleet:
    """What the task ``fleet`` gave, its plans recomputed.  Raises CheckFailed, ValueError."""
    said = json.loads(content)
    plans = tuple(Plan.model_validate_json(text) for text in said["plans"])
    for plan in plans:
        recheck_plan(plan, plan.problem)
    return FoundFleet(Fleet.model_validate_json(said["fleet"]), plans)
