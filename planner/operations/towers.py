"""Where the vision or audio tower of a model stands best, and in which layout."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from planner.operations.operation import Operation, Session
from planner.operations.question import Devices, asked_problem, cluster_of, model_of
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.search.towers.assemble import towers_plan
from planner.search.towers.plan import TowersPlan
from profiles.document import Document

LONGEST_S = 86_400.0


class TowersRequest(Document):
    """A model with a tower, devices, and a workload whose samples have images or audio."""

    model: Annotated[str, Field(max_length=64)] | dict[str, Any]
    cluster: Annotated[str, Field(max_length=64)] | dict[str, Any] = Field(
        description="a name, or a cluster document with one pool"
    )
    devices: Devices | None = Field(default=None, description="scale it to so many devices")
    workload: Workload
    constraints: Constraints = Field(
        default=Constraints(), description="pins are the language model's; no back-end: the plan is for study"
    )
    tower_devices: Devices | None = Field(
        default=None, description="the tower's number of devices of its own; null = the best"
    )
    time_limit_s: float | None = Field(default=None, gt=0, le=LONGEST_S)


def towers_request(problem: Problem, tower_devices: int | None, time_limit_s: float | None) -> TowersRequest:
    """A question that is complete as a request; the limits of requests are a service's."""
    return TowersRequest.model_construct(
        model=problem.model.model_dump(mode="json"),
        cluster=problem.cluster.model_dump(mode="json"),
        devices=None,
        workload=problem.workload,
        constraints=problem.constraints,
        tower_devices=tower_devices,
        time_limit_s=time_limit_s,
    )


def asked_towers(asked: TowersRequest) -> Problem:
    """The question, its names and documents resolved.  Raises NotFound, DocumentInvalid."""
    cluster = cluster_of(asked.cluster, asked.devices)
    return asked_problem(model_of(asked.model), cluster, asked.workload, asked.constraints, Objective())


def _work(session: Session, asked: TowersRequest) -> TowersPlan:
    return towers_plan(asked_towers(asked), asked.time_limit_s, asked.tower_devices)


TOWERS = Operation(
    name="create_towers_plan",
    summary="Where does a model's tower stand best: on the first stage, beside it, or on devices of its own?",
    description="The best plan of each place, with its bound: on the language model's first stage in its layout, on its"
    " devices in a layout\nof its own, on devices of its own.  A plan for study: it is not stored and has no files.",
    request=TowersRequest,
    answer=TowersPlan,
    work=_work,
    path="/v1/towers-plans",
    method="POST",
    tag="plans",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    body=TowersRequest,
    example={
        "model": "qwen2.5-vl-7b",
        "cluster": "dgx-h100",
        "devices": 8,
        "workload": {"global_batch_size": 16, "sequence_length": 4096, "images_per_sample": 2},
        "constraints": {"pins": {"tp": 2}},
    },
    searches=lambda asked: True,
    command="towers",
)
