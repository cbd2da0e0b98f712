"""How much a plan depends on numbers that may be wrong."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.answers.sensitivity import Sensitivity, sensitivity
from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanName
from profiles.document import Document

USUAL_CHANGES = (-0.2, -0.1, 0.1, 0.2)


class SensitivityRequest(Document):
    """A plan and changes of its inputs."""

    plan: PlanName
    changes: list[Annotated[float, Field(allow_inf_nan=True)]] | None = Field(
        default=None, description="fractions by which each input is off; -0.2, -0.1, 0.1, 0.2 if not given"
    )
    replan: bool = Field(default=False, description="search again under each change; takes as long as searches do")


def _work(session: Session, asked: SensitivityRequest) -> Sensitivity:
    changes = tuple(dict.fromkeys(asked.changes or USUAL_CHANGES))
    plan = session.plan(asked.plan)
    return sensitivity(plan, changes, replan=asked.replan, options=session.search, progress=session.progress)


SENSITIVITY = Operation(
    name="get_sensitivity",
    summary="How much the plan depends on numbers that may be wrong",
    description="Compute, links, memory and batch, up and down.",
    request=SensitivityRequest,
    answer=Sensitivity,
    work=_work,
    path="/v1/plans/{plan}/sensitivity",
    served="view",
    searches=lambda asked: asked.replan,
    most={"changes": 8},
    command="sensitivity",
)
