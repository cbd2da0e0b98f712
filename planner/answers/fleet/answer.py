"""The answer: what each job gets, what it would gain with more, who waits and why, and how good the allocation is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.answers.throughput.curve import ThroughputPoint
from profiles.document import Document

Change = Literal["starts", "stays", "moves", "stops", "waits"]


class FleetRow(Document):
    """A job on so many nodes of a pool."""

    nodes: int
    point: ThroughputPoint
    move_s: float | None = Field(
        default=None, ge=0, description="its state into the node that receives most, over all NICs at line rate"
    )


class FleetCurve(Document):
    """The speeds of a job on a pool; equal jobs share one."""

    key: str = Field(description="of the question on this kind of nodes, whatever their number")
    rows: tuple[FleetRow, ...]


class LargerAllocation(Document):
    """What a job would gain with its next larger allocation, if the others kept theirs."""

    devices: int
    more_nodes: int
    gain_tokens_per_s: float
    gain_tokens_per_s_per_node: float
    plan_id: str | None


class JobAllocation(Document):
    """What a job gets."""

    name: str
    change: Change
    why: str | None = Field(default=None, description="why it waits or stops, or moves")
    pool: str | None = None
    nodes: tuple[str, ...] = Field(default=(), description="in the order of the fabric")
    blocks: tuple[str, ...] = ()
    devices: int = 0
    plan_id: str | None = None
    backend: str | None = None
    step_time_s: float | None = None
    tokens_per_s: float = 0.0
    relative_speed: float = Field(default=0.0, description="of the most that it could have alone")
    gap: float | None = Field(default=None, description="how much faster another plan on these devices could be")
    lost_s: float = Field(default=0.0, description="lost by moving")
    hours_to_go: float | None = Field(default=None, description="until its tokens are trained")
    keeps_deadline: bool | None = None
    cost_per_hour: float | None = None
    larger: LargerAllocation | None = Field(default=None, description="null: no larger one is faster, or allowed")
    curves: dict[str, str] = Field(default_factory=dict, description="pool -> key of its speeds there")


class NodeGain(Document):
    """What one free node more in a pool would be worth."""

    goal: str | None = Field(description="the first objective that it would better; null = none")
    gain: float


class BlockNodes(Document):
    """The nodes of a block that jobs may have, in the fabric's order."""

    name: str
    nodes: tuple[str, ...]


class PoolUse(Document):
    """What is left of a pool."""

    name: str
    nodes: int = Field(description="that jobs may have")
    given: int
    free: tuple[str, ...]
    one_node_more: NodeGain | None = Field(description="null: not found in time, or for want of a proof")
    blocks_touched: int
    devices_per_node: int
    blocks: tuple[BlockNodes, ...] = ()


class GoalReached(Document):
    """An objective, in the order in which they count: none gives up anything of those before it."""

    name: str
    value: float
    bound: float = Field(description="no allocation is better, as long as the objectives before are reached as far")
    gap: float
    proved: bool


class Fleet(Document):
    """A fleet that is shared."""

    schema_version: Literal[1] = 1
    jobs: tuple[JobAllocation, ...]
    pools: tuple[PoolUse, ...]
    goals: tuple[GoalReached, ...]
    blocks_touched: int
    blocks_bound: int = Field(description="no placement of the same allocation touches fewer blocks")
    moved: int = Field(description="jobs that ran, and move or stop")
    undecided: int = Field(description="rows of the curves that the budget did not decide")
    curves: tuple[FleetCurve, ...]
    curves_s: float = Field(description="for the speeds")
    allocation_s: float = Field(description="for the allocation and its placement; what more is worth comes after it")
    assumptions: tuple[str, ...]

    @property
    def is_decided(self) -> bool:
        """Whether every speed is known and every objective is proved."""
        return not self.undecided and all(goal.proved for goal in self.goals)
