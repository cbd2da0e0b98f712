"""Devices were lost or gained: the layout kept and the fastest one, what must move, and which to take."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from planner.answers.replan.lost import Lost
from planner.answers.replan.replan import Replan, Staying, replan
from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanName
from planner.operations.question import Devices
from planner.search.options import SearchOptions

MOST_NODES = 100_000
NodeIndex = Annotated[int, Field(ge=0)]
NodeName = Annotated[str, Field(min_length=1, max_length=253)]
"""As long as a host name may be."""
HostList = Annotated[str, Field(min_length=1, max_length=100_000)]


class ReplanQuestion(Staying):
    """``POST /v1/plans/{id}:replan``: devices came or went; exactly one way says which."""

    devices: Devices | None = Field(default=None, description="devices from now on")
    lost_nodes: tuple[NodeIndex | NodeName, ...] = Field(
        default=(),
        max_length=MOST_NODES,
        description="nodes of the old plan that are gone: counted from 0, or named as in node_names",
    )
    lost_devices: tuple[NodeName, ...] = Field(
        default=(),
        max_length=MOST_NODES,
        description="single devices that are gone, NODE:DEVICE, both counted from 0 or the node by its name",
    )
    num_lost_nodes: int | None = Field(default=None, ge=1, description="so many nodes are gone, the last ones")
    node_names: tuple[HostList, ...] = Field(
        default=(),
        max_length=MOST_NODES,
        description="names of the old plan's nodes in the order of their ranks, singly or as host lists: gpu[01-08]",
    )
    top_k: int = Field(default=0, ge=0, le=100)

    @property
    def lost(self) -> Lost:
        """What is said of the devices."""
        return Lost(self.devices, self.lost_nodes, self.num_lost_nodes, self.lost_devices, self.node_names)


class ReplanRequest(ReplanQuestion):
    """A plan, and the devices that there are now."""

    plan: PlanName


def _work(session: Session, asked: ReplanRequest) -> Replan:
    made = replan(
        session.plan(asked.plan),
        asked.lost,
        asked,
        options=replace(session.search or SearchOptions(), top_k=asked.top_k),
        progress=session.progress,
        known=session.known,
    )
    session.keep(made.plan, None)
    return made


REPLAN = Operation(
    name="replan_plan",
    summary="Devices were lost or gained: the layout kept, the fastest one, and what must move",
    description="Each way to go on with its step time, the bytes that must move, how long that takes at the least, what"
    " the checkpoint can\nbecome and whether the loss curve stays; and which to take.\n\nThe recommended plan is"
    " stored.  A search that outlasts the synchronous budget becomes a job (202); the same\nrequest answers once it has"
    " ended.  `prefer_layout: keep` searches nothing.",
    request=ReplanRequest,
    answer=Replan,
    work=_work,
    path="/v1/plans/{plan}:replan",
    method="POST",
    tag="elastic",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    runs="job",
    keyed=True,
    body=ReplanQuestion,
    example={"lost_nodes": [1]},
    changes=True,
    searches=lambda asked: asked.prefer_layout != "keep",
    command="replan",
)
