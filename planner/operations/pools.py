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
from planner.plan.plan import Plan
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

    plan_id: str = Field(description="of the stored plan of its back-end, as in files; a plan for study is not stored")
    problem_id: str
    plan: PoolsPlan
    emission: EmissionView | None


@dataclass(frozen=True, slots=True)
class PoolsPlanned:
    """A plan over pools, as a back-end runs it (None: a plan for study), and how long it was searched for."""

    plan: PoolsPlan
    runnable: Plan | None
    wall_s: float

    @property
    def plan_id(self) -> str:
        """The id of the plan that is stored and that files are of; of a plan for study its own."""
        return self.plan.plan_id if self.runnable is None else self.runnable.plan_id


def pools_plan(problem: PoolsProblem, time_limit_s: float | None = None) -> PoolsPlanned:
    """The best plan.  Raises NoFeasiblePlan, BudgetSpent, DocumentInvalid."""
    start_s = time.perf_counter()
    plan = assemble_pools_plan(problem, find_assignment(problem, time_limit_s))
    return PoolsPlanned(plan, runnable_plan(plan), time.perf_counter() - start_s)


def runnable_plan(plan: PoolsPlan) -> Plan | None:
    """The plan as its back-end runs it, which is what is stored; None of a plan for study."""
    return None if plan.strategy is None else launchable_plan(plan)


def pools_emission(planned: PoolsPlanned, launcher: LauncherName) -> EmissionView:
    """Launch files of the back-end that the stages were planned for.

    Raises DocumentInvalid for a plan for study, BackEndRefused for a launcher of equal nodes.
    """
    if planned.runnable is None:
        raise for_study()
    return emission_view(PlanThere(planned.runnable, None), launcher, LaunchSettings())


def pools_request(problem: PoolsProblem, time_limit_s: float | None) -> PoolsRequest:
    """A question that is complete as a request; the limits of requests are a service's."""
    return PoolsRequest.model_construct(
        model=problem.model.model_dump(mode="json"),
        pools=tuple(PoolPart.model_construct(cluster=each.model_dump(mode="json")) for each in problem.clusters),
        workload=problem.workload,
        constraints=problem.constraints,
        time_limit_s=time_limit_s,
    )


def asked_pools(asked: PoolsRequest) -> PoolsProblem:
    """The question, its names and documents resolved.  Raises NotFound, DocumentInvalid, BackEndRefused."""
    clusters = tuple(_one_pool(cluster_of(part.cluster, part.devices)) for part in asked.pools)
    problem = complete_pools_problem(model_of(asked.model), clusters, asked.workload, asked.constraints)
    if asked.launcher is not None and not problem.alike:
        raise for_study()
    return problem


def for_study() -> DocumentInvalid:
    """The error of a plan for study, which has no launch files."""
    return DocumentInvalid(
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
    planned = pools_plan(problem, asked.time_limit_s)
    if planned.runnable is not None:
        # Its question is about the devices that are used alone: no later search may take it for that one's answer.
        session.keep(planned.runnable, None)
    emission = None if asked.launcher is None else pools_emission(planned, asked.launcher)
    return PoolsAnswerView(plan_id=planned.plan_id, problem_id=problem.problem_id, plan=planned.plan, emission=emission)


POOLS = Operation(
    name="create_pools_plan",
    summary="One pipeline over several kinds of devices, with launch files where a back-end runs it",
    description="Stages on unequal devices, with the bound of the search.  With one back-end in"
    " `constraints.backends` the stages are\nalike in what it needs equal, and `launcher` gives their files; other"
    " back-ends say why not.  A plan of a back-end is stored and named by\n`plan_id`; one for study is not.",
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
    changes=True,
    searches=lambda asked: True,
    command="plan",
)
