"""Devices were lost or gained: the new plan, and what must move."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from planner.answers.replan.replan import Replan, replan
from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanRequest
from planner.operations.question import Devices
from planner.search.options import SearchOptions
from profiles.document import Document


class ReplanQuestion(Document):
    """``POST /v1/plans/{id}:replan``: devices came or went; exactly one of the two says how many."""

    devices: Devices | None = Field(default=None, description="devices from now on")
    lost_nodes: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(), max_length=100_000, description="nodes of the old plan that are gone, counted from 0"
    )
    top_k: int = Field(default=0, ge=0, le=100)


class ReplanRequest(PlanRequest):
    """A plan, and the devices that there are now."""

    devices: int | None = None
    lost_nodes: tuple[int, ...] = ()
    top_k: int = 0


def _work(session: Session, asked: ReplanRequest) -> Replan:
    made = replan(
        session.plan(asked.plan),
        num_devices=asked.devices,
        lost_nodes=asked.lost_nodes,
        options=replace(session.search or SearchOptions(), top_k=asked.top_k),
        progress=session.progress,
    )
    session.keep(made.plan, None)
    return made


REPLAN = Operation(
    name="replan_plan",
    summary="Devices were lost or gained: the new plan, and what must move",
    description="Which axes keep their layout, the bytes that must cross the network, and how long that takes at the"
    " least.\n\nThe new plan is stored.",
    request=ReplanRequest,
    answer=Replan,
    work=_work,
    path="/v1/plans/{plan}:replan",
    method="POST",
    tag="elastic",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    body=ReplanQuestion,
    example={"lost_nodes": [1]},
    changes=True,
    searches=lambda asked: True,
    command="replan",
)
