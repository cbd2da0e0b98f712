"""The question of a fleet: jobs, the pools whose nodes they share, and what is best."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from planner.answers.fleet.answer import Fleet
from planner.question.problem import Constraints, Workload
from profiles.document import Document

FleetObjective = Literal["throughput", "deadlines", "cost", "fairness"]
Moves = Literal["when_it_pays", "fewest"]
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
HostLists = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=10_000)], ...],
    Field(max_length=100_000, description="names of nodes or host lists such as n[000-031], in the fabric's order"),
]
Part = Annotated[str, Field(min_length=1, max_length=256)] | dict[str, Any]
FleetId = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(gt=0, le=10_000_000)]
MOST_JOBS, MOST_POOLS = 1_000, 64


class Held(Document):
    """What a job has now."""

    pool: Name
    nodes: HostLists = Field(min_length=1)
    plan: str | None = Field(
        default=None, min_length=1, max_length=128, description="the stored plan that it runs: id, prefix or label"
    )


class FleetJob(Document):
    """A job that runs or waits."""

    name: Name
    model: Part = Field(description="a model by name, or its document")
    workload: Workload
    constraints: Constraints = Constraints()
    weight: float = Field(default=1.0, gt=0, le=1e6, description="what the job counts beside the others")
    pools: tuple[Name, ...] = Field(default=(), description="pools that it may use; empty = all")
    min_devices: Count | None = Field(default=None, description="null = the fewest that hold it")
    max_devices: Count | None = Field(default=None, description="null = all of a pool")
    device_counts: tuple[Count, ...] = Field(
        default=(), max_length=64, description="sizes to consider; empty = powers of two of nodes, and both ends"
    )
    between: bool = Field(
        default=False, description="without device_counts also 3, 6, 12, ... nodes: twice as many speeds to find"
    )
    compact: bool = Field(default=False, description="its nodes lie in as few blocks as so many nodes need")
    tokens_to_go: float | None = Field(default=None, gt=0, description="tokens that it still has to train")
    deadline_hours: float | None = Field(default=None, gt=0, description="from now; needs tokens_to_go")
    preemptible: bool = Field(default=True, description="false: it keeps the nodes that it holds")
    preemption_s: float | None = Field(
        default=None,
        ge=0,
        description="lost when it is moved, beside moving its state: saving, starting, warming up; null = not known,"
        " taken as nothing",
    )
    current: Held | None = Field(default=None, description="null = it does not run yet")


class FleetPool(Document):
    """Nodes of one kind, by name."""

    name: Name
    cluster: Part = Field(description="a cluster by name, or its document, of one pool")
    nodes: HostLists = Field(min_length=1)
    busy: HostLists = Field(default=(), description="nodes of these that others hold")
    blocks: dict[Name, HostLists] | None = Field(
        default=None,
        description="nodes under each leaf switch; null = as many as the cluster's innermost fabric level says, in the"
        " order of `nodes`",
    )
    price_per_device_hour: float | None = Field(default=None, gt=0, description="null = the cluster's own")


class FleetQuestion(Document):
    """Who gets how many of which nodes?"""

    schema_version: Literal[1] = 1
    jobs: tuple[FleetJob, ...] = Field(min_length=1, max_length=MOST_JOBS)
    pools: tuple[FleetPool, ...] = Field(min_length=1, max_length=MOST_POOLS)
    objective: FleetObjective = Field(
        default="throughput",
        description="throughput: the sum of weight x relative speed; deadlines: the weight of the deadlines that are"
        " kept; cost: the least money, with as many jobs as can run; fairness: the largest least relative speed over"
        " weight, with as many jobs as can run.  Relative speed: tokens/s over the most that the job could have alone",
    )
    moves: Moves = Field(
        default="when_it_pays",
        description="when_it_pays: a job moves where that is worth the time that it loses; fewest: as few as possible",
    )
    horizon_hours: float = Field(
        default=24.0,
        gt=0,
        le=1e5,
        description="how long the allocation will hold: what time lost by moving is held against",
    )
    lost_nodes: HostLists = Field(default=(), description="nodes that are gone")
    former: Fleet | FleetId | None = Field(
        default=None,
        description="an earlier answer, or the id under which a service keeps it: what its jobs got is what they hold"
        " now, and nothing is asked twice",
    )
    profile: Literal["none", "auto"] = Field(default="none", description="measurements: none, or auto = what is stored")
    budget_s: float = Field(default=20.0, gt=0, le=3600, description="the most for the speeds of all jobs together")
    time_limit_s: float = Field(default=10.0, gt=0, le=3600, description="the most for the allocation")
    seed: int = Field(default=0, ge=0, lt=2**31)

    @property
    def before(self) -> Fleet | None:
        """The earlier answer, once it stands here itself (``planner.operations.fleet.with_former``)."""
        return self.former if isinstance(self.former, Fleet) else None
