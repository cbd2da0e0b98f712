"""How many tokens a day a plan trains, with failures; days and money to a number of tokens."""

from __future__ import annotations

from pydantic import Field

from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanName
from planner.question.reliability import Reliability
from planner.search.goodput.goodput import Goodput, goodput


class GoodputRequest(Reliability):
    """A plan, what decides how much of the time it trains, and the goal."""

    plan: PlanName
    tokens: float | None = Field(default=None, gt=0, description="the goal: how many tokens are to be trained")
    price_per_device_hour: float | None = Field(default=None, gt=0, description="null = the plan's or the cluster's")


def _work(session: Session, asked: GoodputRequest) -> Goodput:
    plan = session.plan(asked.plan)
    return goodput(plan, asked, tokens=asked.tokens, price_per_device_hour=asked.price_per_device_hour)


GOODPUT = Operation(
    name="get_goodput",
    summary="Tokens a day with failures, checkpoints and repairs; days and money to a goal",
    description="The best interval between checkpoints, what failures of each kind cost, and how many spare nodes"
    " pay.\n\nFailures are those of a published run, or a rate that is given; the storage's bandwidth must be said.",
    request=GoodputRequest,
    answer=Goodput,
    work=_work,
    path="/v1/plans/{plan}/goodput",
    served="view",
    command="goodput",
)
