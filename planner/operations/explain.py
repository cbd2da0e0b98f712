"""Why this plan, and why not another."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.answers.explain.why import Explanation, explain
from planner.answers.explain.why_not import WhyNot, why_not
from planner.operations.operation import Operation, Session, Wire
from planner.operations.plan_reference import PlanName
from planner.strategy.fields import PINNABLE
from planner.strategy.text import parse_assignments
from profiles.document import Document


class ExplainRequest(Document):
    """A plan, and another choice where one is asked about."""

    plan: PlanName
    brief: bool = Field(default=False, description="only what the plan says; no estimates of its neighbours")
    why_not: Annotated[str | None, Wire(max_length=500)] = Field(
        default=None, description="another choice, for example tp=4,pp=8"
    )


def _work(session: Session, asked: ExplainRequest) -> Explanation | WhyNot:
    if asked.why_not is None:
        return explain(session.plan(asked.plan), with_neighbours=not asked.brief)
    pins = parse_assignments([asked.why_not], "--why-not", PINNABLE)
    return why_not(session.plan(asked.plan), pins, session.search, session.progress)


EXPLAIN = Operation(
    name="get_explanation",
    summary="Why this plan, and why not another",
    description="Sentences to read, causes and memory to look up, neighbours as the ledger; or the answer to a"
    " counterfactual.",
    request=ExplainRequest,
    answer=Explanation | WhyNot,
    work=_work,
    path="/v1/plans/{plan}/explanation",
    served="view",
    searches=lambda asked: asked.why_not is not None,
    command="explain",
)
