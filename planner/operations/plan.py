"""The best plan of a question, with the proof of how fast one can be."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from planner.operations.operation import Operation, Session
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.document import Document


class PlanningRequest(Document):
    """A question, and how long and how broadly to search."""

    question: Problem | dict[str, Any]
    top_k: int = 3
    time_limit_s: float | None = None
    seed: int = 0
    reuse: bool = Field(
        default=False, exclude=True, description="take a stored, proved answer; a service does so always"
    )


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and where it comes from; ``wall_s``: how long it was searched for here."""

    plan: Plan
    source: Literal["searched", "stored", "service"] = "service"
    wall_s: float | None = None


def _work(session: Session, asked: PlanningRequest) -> Planned:
    problem = session.problem(asked.question)
    known = session.known(problem, asked.top_k) if asked.reuse else None
    if known is not None:
        return Planned(known, "stored")
    # What is no database is found before a long search, not after it; one is opened beside the search.
    session.keeping()
    bounds = session.search or SearchOptions()
    bounds = replace(bounds, top_k=asked.top_k, time_limit_s=asked.time_limit_s, seed=asked.seed)
    start_s = time.perf_counter()
    plan = find_plan(problem, bounds, session.progress)
    wall_s = time.perf_counter() - start_s
    session.keep(plan, wall_s)
    return Planned(plan, "searched", wall_s)


PLAN = Operation(
    name="create_plan",
    summary="Find the fastest way to train a model on a cluster, and prove it",
    description="Equal questions get the stored plan.  A search that outlasts the synchronous budget becomes a job"
    " (202).",
    request=PlanningRequest,
    answer=Planned,
    work=_work,
    path="/v1/plans",
    method="POST",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    runs="job",
    keyed=True,
    changes=True,
    searches=lambda asked: True,
    command="plan",
)
