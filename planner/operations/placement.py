"""Which node of an allocation takes which place of a plan."""

from __future__ import annotations

from pydantic import Field

from planner.answers.placement.placement import Placement, place_nodes
from planner.answers.placement.switches import read_switches
from planner.backends.launch.hosts import read_hosts
from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanRequest
from profiles.document import Document
from solver.constraint_program import Effort

DETERMINISTIC_S = 20.0
"""CP-SAT's own time: the same answer on machines that get so far within the limit."""


class PlacementQuestion(Document):
    """The nodes that a scheduler gave, and the switches above them."""

    topology: str = Field(
        min_length=1,
        max_length=20_000_000,
        description="`scontrol show topology`, topology.conf, or one leaf a line: `leaf1: n[001-032]`",
    )
    nodes: tuple[str, ...] = Field(
        default=(),
        max_length=100_000,
        description="names or host lists, node rank 0 first; empty = all nodes of the topology",
    )
    time_limit_s: float = Field(default=6.0, gt=0, le=60, description="for the integer program")
    seed: int = Field(default=0, ge=0, lt=2**31)


class PlacementRequest(PlanRequest, PlacementQuestion):
    """A plan, and where it is to run."""


def _work(session: Session, asked: PlacementRequest) -> Placement:
    switches = read_switches(asked.topology)
    nodes = read_hosts("\n".join(asked.nodes), "--nodes") or tuple(switches.tiers[0][1])
    effort = Effort(wall_s=asked.time_limit_s, deterministic_s=DETERMINISTIC_S, seed=asked.seed)
    return place_nodes(session.plan(asked.plan), nodes, switches, effort)


PLACEMENT = Operation(
    name="create_placement",
    summary="Which node of an allocation takes which place of a plan?",
    description="The order of the nodes that is fastest by the plan's own cost model, with what every axis gets on the"
    " graph of these nodes and their switches, beside the order as listed; and how much another order could win"
    " at most.\n\n`order` is what `hosts` of an emission takes.",
    request=PlacementRequest,
    answer=Placement,
    work=_work,
    path="/v1/plans/{plan}/placement",
    method="POST",
    served="view",
    body=PlacementQuestion,
    example={"topology": "leaf1: n[01-04]\nleaf2: n[05-08]", "nodes": ["n[01-08]"]},
    command="place",
)
