"""Serving: the best deployment for a traffic, and what a given one would give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from planner.operations.operation import Operation, Session
from planner.operations.question import Devices, cluster_of, model_of
from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.plan import RankedDeployment, ServingPlan
from planner.serving.problem import ServingConstraints, ServingObjective, ServingProblem
from planner.serving.traffic import ServiceLevel, ServingTraffic
from planner.serving.words import EngineName, WeightFormat
from profiles.document import Document

if TYPE_CHECKING:
    from planner.serving.search.curves import Evaluator

LONGEST_S = 3600.0
USUAL_S, USUAL_LARGE_S = 2.0, 4.0
"""Seconds of this process for a question without a time limit of its own: up to ``LARGE`` devices, and above."""
LARGE = 64


class ServingQuestion(Document):
    """Model, devices, traffic, promises: the parts of a serving question."""

    schema_version: int = Field(default=1, ge=1, le=1)
    model: Annotated[str, Field(max_length=1000)] | dict[str, Any]
    cluster: Annotated[str, Field(max_length=1000)] | dict[str, Any] = Field(
        description="a name, or a cluster document with one pool"
    )
    devices: Devices | None = Field(default=None, description="scale it to so many devices")
    traffic: ServingTraffic
    promised: ServiceLevel = ServiceLevel()
    objective: ServingObjective = "throughput"
    constraints: ServingConstraints = ServingConstraints()
    checkpoint: WeightFormat | None = Field(
        default=None, description="how the checkpoint stores dense weights; null = as its config says, else 16 bit"
    )
    expert_checkpoint: WeightFormat | None = Field(default=None, description="... and experts; null = the same")


class ServingPlanRequest(ServingQuestion):
    """A question, and how long it may be searched."""

    time_limit_s: float | None = Field(default=None, gt=0, le=LONGEST_S)


class ServingEstimateRequest(ServingQuestion):
    """A question, and the deployment that is asked about."""

    engine: EngineName = "vllm"
    release: str | None = Field(default=None, description="null = the engine's pinned one")
    groups: tuple[InstanceGroup, ...] = Field(min_length=1, max_length=2)


class ServingEstimate(Document):
    """What a deployment gives, and why it cannot be started: rules of its engine, devices that are not there."""

    problem: ServingProblem
    line: RankedDeployment
    refused: tuple[str, ...] = ()


def serving_problem(asked: ServingQuestion) -> ServingProblem:
    """The question, its names and documents resolved.  Raises NotFound, DocumentInvalid."""
    from profiles.validation import read_document

    weights, experts = asked.checkpoint, asked.expert_checkpoint
    if weights is None:
        weights, experts = published_checkpoint(asked.model, files=True)
    data = {
        "model": model_of(asked.model),
        "cluster": cluster_of(asked.cluster, asked.devices),
        "traffic": asked.traffic,
        "promised": asked.promised,
        "objective": asked.objective,
        "constraints": asked.constraints,
        "checkpoint": weights,
        "expert_checkpoint": experts,
    }
    return read_document(ServingProblem, data, "the serving question")


def published_checkpoint(
    said: str | Mapping[str, Any], *, files: bool = False
) -> tuple[WeightFormat, WeightFormat | None]:
    """The formats that a Hugging Face config says; of a built-in model those of its published checkpoint.

    ``files``: a name may be that of a file or folder of this machine.  Raises DocumentInvalid.
    """
    from planner.serving.checkpoint import checkpoint_formats

    return checkpoint_formats(_config_of(said, files))


def _config_of(said: str | Mapping[str, Any], files: bool) -> Mapping[str, Any]:
    from pathlib import Path

    from planner.model.builtin import builtin_document, builtin_models
    from profiles.safe_yaml import load_document_file

    if not isinstance(said, str):
        return said
    if said.strip().lower() in builtin_models():
        found = builtin_document(said).get("hf_config", {})
        return found if isinstance(found, Mapping) else {}
    if not files:
        return {}
    path = Path(said)
    path = path / "config.json" if path.is_dir() else path
    if path.suffix != ".json" or not path.is_file():
        return {}
    data = load_document_file(path, not_finite=True)
    return data if isinstance(data, Mapping) else {}


def _evaluator(problem: ServingProblem) -> Evaluator:
    from planner.serving.search.predictors import KernelEvaluator

    return KernelEvaluator(problem.model, problem.cluster, problem.traffic)


def _plan(session: Session, asked: ServingPlanRequest) -> ServingPlan:
    from planner.serving.search.answer import answered
    from planner.serving.search.families import families_of, refusal_of

    problem = serving_problem(asked)
    most_s = asked.time_limit_s or (USUAL_S if problem.num_devices <= LARGE else USUAL_LARGE_S)
    return answered(problem, families_of(problem), _evaluator(problem), refusal_of(problem), most_s=most_s)


def _estimate(session: Session, asked: ServingEstimateRequest) -> ServingEstimate:
    from planner.serving.search.curves import limits_of
    from planner.serving.search.families import families_of, refusal_of
    from planner.serving.search.settling import estimated
    from profiles.validation import read_document

    constraints = asked.constraints.model_copy(
        update={"engines": (asked.engine if asked.release is None else f"{asked.engine}=={asked.release}",)}
    )
    problem = serving_problem(asked.model_copy(update={"constraints": constraints}))
    family = families_of(problem)[0]
    data = {"engine": family.engine, "release": family.release, "formats": family.formats, "groups": asked.groups}
    deployment = read_document(Deployment, data, "the deployment")
    refusal = refusal_of(problem)
    reasons = (refusal(family, group) for group in asked.groups)
    refused = tuple(f"{family.engine} does not run it: {reason}" for reason in reasons if reason is not None)
    if deployment.num_devices > problem.num_devices:
        refused += (f"it takes {deployment.num_devices:,} devices; the question has {problem.num_devices:,}",)
    line = estimated(problem, _evaluator(problem), deployment, limits_of(problem.promised))
    return ServingEstimate(problem=problem, line=line, refused=refused)


EXAMPLE = {
    "model": "llama-3.1-70b",
    "cluster": "dgx-h100",
    "devices": 8,
    "traffic": {"input_tokens": {"mean": 4000}, "output_tokens": {"mean": 500}},
    "promised": {"ttft_s": 2.0, "tpot_s": 0.04, "percentile": 90},
}
SERVING_PLAN = Operation(
    name="create_serving_plan",
    summary="The best deployment of an engine for a traffic: layout, instances, prefill and decode apart or together",
    description="The engine, its layout, number formats, batch limits and numbers of instances with the most tokens a"
    " second, the least\nmoney or the fewest devices under the promises, with a bound on every other deployment; why,"
    " what each promise costs,\nand what the best of each other engine and kind would give.  It is not stored.",
    request=ServingPlanRequest,
    answer=ServingPlan,
    work=_plan,
    path="/v1/serving/plans",
    method="POST",
    tag="serving",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    body=ServingPlanRequest,
    example=EXAMPLE,
    searches=lambda asked: True,
    command="serving plan",
)
SERVING_ESTIMATE = Operation(
    name="create_serving_estimate",
    summary="What a given deployment gives under a traffic, and whether its engine runs it",
    description="Times to the first and to each further token, tokens a second, memory, what binds.  Without a load in"
    " the traffic, at\nthe load with the most tokens under the promises.",
    request=ServingEstimateRequest,
    answer=ServingEstimate,
    work=_estimate,
    path="/v1/serving/estimates",
    method="POST",
    tag="serving",
    scope="read",
    errors=(404, 409, 504),
    served="own",
    body=ServingEstimateRequest,
    example={**EXAMPLE, "engine": "vllm", "groups": [{"num_instances": 2, "layout": {"tp": 4}}]},
    searches=lambda asked: True,
    command="serving estimate",
)
