"""One pipeline over several kinds of devices, and its launch files where a back-end runs it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from planner.answers.replan.other_backend import PlanThere
from planner.backends.launch import LauncherName
from planner.backends.launch.settings import LaunchSettings
from planner.errors import DocumentInvalid
from planner.operations.emit import EmissionView, emission_view
from planner.operations.operation import Operation, Session
from planner.operations.question import Devices, cluster_of, model_of
from planner.question.problem import Constraints, Workload
from planner.search.pools.assemble import assemble_pools_plan
from planner.search.pools.find import find_assignment
from planner.search.pools.launchable import launchable_plan
from planner.search.pools.plan import PoolsPlan
from planner.search.pools.problem import PoolsProblem, complete_pools_problem
from profiles.cluster import Cluster
from profiles.document import Document

MOST_POOLS = 8
LONGEST_S = 86_400.0


class PoolPart(Document):
    """One pool: equal nodes of one kind of device."""

    cluster: Annotated[str, Field(max_length=64)] | dict[str, Any] = Field(
        description="a name, or a cluster document with one pool"
    )
    devices: Devices | None = Field(default=None, description="scale it to so many devices")


class PoolsRequest(Document):
    """A model, a workload, and the pools that one pipeline may use."""

    model: Annotated[str, Field(max_length=64)] | dict[str, Any]
    pools: tuple[PoolPart, ...] = Field(min_length=1, max_length=MOST_POOLS)
    workload: Workload
    constraints: Constraints = Field(
        default=Constraints(), description="backends: the one that runs it; any = a plan for study, without files"
    )
    launcher: LauncherName | None = Field(default=None, description="write launch files for it; null = none")
    time_limit_s: float | None = Field(default=None, gt=0, le=LONGEST_S)


class PoolsAnswerView(Document):
    """The plan, and its launch files where they were asked for."""

    plan_id: str
    problem_id: str
    plan: PoolsPlan
    emission: EmissionView | None


@dataclass(frozen=True, slots=True)
class PoolsPlanned:
    """A plan over pools, and how long it was searched for."""

    plan: PoolsPlan
    wall_s: float


def pools_plan(problem: PoolsProblem, time_limit_s: float | None = None) -> PoolsPlanned:
    """The best plan.  Raises NoFeasiblePlan, BudgetSpent, DocumentInvalid."""
    start_s = time.perf_counter()
    plan = assemble_pools_plan(problem, find_assignment(problem, time_limit_s))
    return PoolsPlanned(plan, time.perf_counter() - start_s)


def pools_emission(plan: PoolsPlan, launcher: LauncherName) -> EmissionView:
    """Launch files of the back-end that the stages were planned for.

    Raises DocumentInvalid for a plan for study, BackEndRefused for a launcher of equal nodes.
    """
    demand_back_end(plan.problem)
    return emission_view(PlanThere(launchable_plan(plan), None), launcher, LaunchSettings())


def asked_pools(asked: PoolsRequest) -> PoolsProblem:
    """The question, its names and documents resolved.  Raises NotFound, DocumentInvalid, BackEndRefused."""
    clusters = tuple(_one_pool(cluster_of(part.cluster, part.devices)) for part in asked.pools)
    problem = complete_pools_problem(model_of(asked.model), clusters, asked.workload, asked.constraints)
    if asked.launcher is not None:
        demand_back_end(problem)
    return problem


def demand_back_end(problem: PoolsProblem) -> None:
    """Raise DocumentInvalid for a plan for study, which has no launch files."""
    if not problem.alike:
        raise DocumentInvalid(
            "no back-end runs stages with devices and sub-meshes of their own",
            where="/constraints/backends",
            hint="name a back-end that runs alike stages on unequal devices, for example native",
        )


def _one_pool(cluster: Cluster) -> Cluster:
    if len(cluster.pools) != 1:
        raise DocumentInvalid(
            f"{cluster.name} has {len(cluster.pools)} pools of its own", where="/pools", hint="name one pool at a time"
        )
    return cluster


def _work(session: Session, asked: PoolsRequest) -> PoolsAnswerView:
    problem = asked_pools(asked)
    plan = pools_plan(problem, asked.time_limit_s).plan
    emission = None if asked.launcher is None else pools_emission(plan, asked.launcher)
    return PoolsAnswerView(plan_id=plan.plan_id, problem_id=problem.problem_id, plan=plan, emission=emission)


POOLS = Operation(
    name="create_pools_plan",
    summary="One pipeline over several kinds of devices, with launch files where a back-end runs it",
    description="Stages on unequal devices, with the bound of the search.  With one back-end in"
    " `constraints.backends` the stages are\nalike in what it needs equal, and `launcher` gives their files; other"
    " back-ends say why not.  Such plans are not stored.",
    request=PoolsRequest,
    answer=PoolsAnswerView,
    work=_work,
    path="/v1/pools-plans",
    method="POST",
    tag="plans",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    body=PoolsRequest,
    example={
        "model": "llama-3.1-8b",
        "pools": [{"cluster": "dgx-a100-40g", "devices": 8}, {"cluster": "dgx-h100", "devices": 8}],
        "workload": {"global_batch_size": 16, "sequence_length": 2048},
        "constraints": {"backends": ["native"], "pins": {"num_microbatches": 8}},
        "launcher": "slurm",
    },
    searches=lambda asked: True,
    command="plan",
)
