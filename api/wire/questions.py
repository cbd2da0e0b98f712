"""Planning questions as they come over the wire, before names become documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from api.wire.older_questions import emission_of_today, question_of_today
from planner.backends.launch import LauncherName
from planner.operations.question import Devices
from planner.question.problem import BACKEND_PATTERN, Constraints, Objective, Preference, Workload
from profiles.document import Document

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""Models, clusters and profiles are named like labels; a name is never a path or an address."""
MOST_HOST_LINES = 1_000
LONGEST_TEXT = 300
MOST_VARIABLES = 200

ModelPart = Annotated[
    Name | dict[str, Any],
    Field(description="a built-in or stored name; or a Hugging Face config, a model description or a whole ModelSpec"),
]
ClusterPart = Annotated[
    Name | dict[str, Any],
    Field(description="a built-in or stored name; or a cluster document (units may be spelt)"),
]
Lever = Literal["compute_rate", "scale_up_bandwidth", "nic_bandwidth", "memory_capacity"]
StrategyPart = Annotated[
    dict[str, int | str | bool],
    Field(description="strategy fields, for example tp, pp, micro_batch_size; short words as on the command line"),
]


BackEndPart = Annotated[str, StringConstraints(pattern=BACKEND_PATTERN, max_length=128)]
"""``NAME`` or ``NAME==RELEASE``; which names there are, the registry says."""
Positive = Annotated[int, Field(ge=1, le=1_000_000)]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Variable = Annotated[str, StringConstraints(max_length=4_096, pattern=r"^[A-Za-z_][A-Za-z0-9_]*=")]
"""``NAME=VALUE``."""

CalibrationPart = Annotated[
    Annotated[str, StringConstraints(pattern="^[0-9a-f]{4,64}$")] | dict[str, Any],
    Field(
        description="id, or its unique beginning, of a calibration kept on this server; or the document of one, whole"
        " or as `problem.calibration` of a plan has it"
    ),
]


class Question(Document):
    """Which problem is meant: the parts of ``planner.question.problem.Problem``, by name or in full."""

    model: ModelPart
    cluster: ClusterPart
    devices: Devices | None = Field(default=None, description="scale the cluster to so many devices")
    workload: Workload
    constraints: Constraints = Constraints()
    objective: Objective = Objective()
    profile: Name = Field(default="none", description="measurements: none, auto (what is stored), or a name")
    calibration: CalibrationPart | None = Field(default=None, description="factors that correct the predictions")

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, data: Any) -> Any:
        return question_of_today(data)


class PlanQuestion(Question):
    """``POST /v1/plans``: the best plan."""

    prefer: Preference | None = Field(
        default=None,
        description="of plans that the model cannot tell apart: recommended = the surest and simplest, fastest = that"
        " one; null = as the objective says, and recommended where it does not",
    )
    top_k: int = Field(default=3, ge=0, le=100, description="runners-up to report")
    time_limit_s: float | None = Field(default=None, gt=0, le=86_400, description="None = until proved")
    seed: int = Field(default=0, ge=0, lt=2**31)
    priority: int = Field(
        default=0,
        ge=-100,
        le=100,
        description="of the job, if it becomes one; higher is earlier; above 0 needs the scope admin",
    )

    @model_validator(mode="before")
    @classmethod
    def _preference(cls, data: Any) -> Any:
        """What the objective says is written out here: of a document that is sent on, the default one is left out."""
        if not isinstance(data, Mapping) or data.get("prefer") is not None:
            return data
        objective = data.get("objective")
        if isinstance(objective, Objective):
            objective = {"prefer": objective.prefer} if "prefer" in objective.model_fields_set else {}
        said = objective.get("prefer") if isinstance(objective, Mapping) else None
        return data if said is None else {**data, "prefer": said}


class EstimateQuestion(Question):
    """``POST /v1/estimates``: the numbers of one strategy, without any search."""

    strategy: StrategyPart = Field(default_factory=dict)
    scale: dict[Lever, Annotated[float, Field(gt=0, le=100)]] = Field(
        default_factory=dict, description="what if an input were so many times what it is, for example memory_capacity"
    )
    chunk_layers: tuple[int, ...] | None = Field(
        default=None, max_length=10_000, description="layers of each model chunk; None = the best split"
    )
    include_problem: bool = Field(default=False, description="answer with the complete problem too")


class StrategyText(Document):
    """``POST /v1/strategies:read``: a configuration as somebody typed or pasted it."""

    text: str = Field(min_length=1, max_length=100_000, description="`tp=8,pp=4`, or a Megatron-LM launch script")


class PoolPart(Document):
    """Some devices of one kind."""

    name: str = Field(max_length=64, description="how the answer calls it")
    cluster: ClusterPart
    devices: Devices


class ThroughputQuestion(Document):
    """``POST /v1/throughput``: how fast on each of these device counts or pools?"""

    model: ModelPart
    cluster: ClusterPart | None = Field(default=None, description="with device_counts: what is cut to each count")
    device_counts: tuple[Devices, ...] = Field(default=(), max_length=1_000)
    pools: tuple[PoolPart, ...] = Field(default=(), max_length=1_000, description="device kinds to compare, one by one")
    workload: Workload
    constraints: Constraints = Constraints()
    objective: Objective = Field(
        default=Objective(), description="its price counts; at one number of devices every objective takes the fastest"
    )
    profile: Name = "none"
    calibration: CalibrationPart | None = Field(default=None, description="factors that correct the predictions")
    price_per_device_hour: float | None = Field(default=None, gt=0, description="else the cluster's own price")
    budget_s: float = Field(default=2.0, gt=0, le=60, description="wall time for the whole answer")
    time_limit_s: float | None = Field(default=None, gt=0, le=60, description="the most for one search of one row")
    seed: int = Field(default=0, ge=0, lt=2**31)

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, data: Any) -> Any:
        return question_of_today(data)


class EmissionQuestion(Document):
    """``POST /v1/plans/{id}/emissions``: launch files, of the plan or of the best plan in another back-end.

    What is said about the place where the job runs stands in the files; what is not, as marked places.
    """

    backend: BackEndPart | None = Field(default=None, description="null = the plan's own")
    launcher: LauncherName = "torchrun"
    hosts: tuple[Annotated[str, StringConstraints(max_length=LONGEST_TEXT)], ...] = Field(
        default=(),
        max_length=MOST_HOST_LINES,
        description="in the fabric's order; names or host lists such as n[000-031]",
    )
    switches: Positive | None = Field(default=None, description="Slurm: leaf switches that the job may span")
    network_tier: Positive | None = Field(default=None, description="Volcano: highest tier of HyperNodes of the job")
    topology_label: Text | None = Field(default=None, description="Kubernetes: node label of the domain to stay inside")
    image: Text | None = Field(default=None, description="Kubernetes: the container image")
    namespace: Text | None = Field(default=None, description="Kubernetes: the namespace")
    files_claim: Text | None = Field(
        default=None, description="Kubernetes: a volume claim with the files, instead of a ConfigMap"
    )
    env: tuple[Variable, ...] = Field(
        default=(), max_length=MOST_VARIABLES, description="variables of every rank beside the plan's own"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, data: Any) -> Any:
        return emission_of_today(data)


class ProfileName(Document):
    """``PUT /v1/profiles/{name}``: which measured profile of this server the name means."""

    schema_version: Literal[1] = 1
    profile_id: str = Field(pattern="^[0-9a-f]{4,64}$", description="id or unique prefix of a profile kept here")
