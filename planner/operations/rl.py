"""RL post-training: the best deployment for a question, and the step of a given one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from planner.errors import DocumentInvalid
from planner.operations.operation import Operation, Session
from planner.operations.question import Devices, cluster_of, model_of
from planner.rl.plan import RankedRl, RlPlan
from planner.rl.predict.engine import served_engine
from planner.rl.problem import RlProblem, RlQuestion
from planner.rl.search.divisions import Division
from planner.rl.search.find import find_rl_plan
from planner.rl.search.played import played
from planner.rl.words import Placement, Synchrony
from profiles.validation import read_document

LONGEST_S = 86_400.0
NamedModel = Annotated[str, Field(max_length=64)] | dict[str, Any]


class RlRequest(RlQuestion):
    """A question whose model and cluster are names or documents."""

    model: NamedModel = Field(description="the actor: a name, or a model document")
    cluster: Annotated[str, Field(max_length=64)] | dict[str, Any] = Field(
        description="a name, or a cluster document with one pool"
    )
    devices: Devices | None = Field(default=None, description="scale it to so many devices")
    critic: NamedModel | None = Field(default=None, description="ppo only; null = as large as the actor")
    time_limit_s: float | None = Field(default=None, gt=0, le=LONGEST_S)


class RlEstimateRequest(RlRequest):
    """The same, and what is run."""

    placement: Placement
    synchrony_asked: Synchrony = Field(default="synchronous", description="of the steps that are predicted")
    rollout_devices: Devices | None = Field(default=None, description="split: devices of the engines; null = half")
    rollout_tp: int | None = Field(default=None, gt=0, description="devices of an engine instance; null = the best")
    strategy: dict[str, int | str | bool] | None = Field(
        default=None, description="the trainer's, as of a training plan; null = the best"
    )


def asked_rl(asked: RlRequest) -> RlProblem:
    """The question, its names and documents resolved.  Raises NotFound, DocumentInvalid."""
    sizes = {name: getattr(asked, name) for name in RlQuestion.model_fields}
    critic = None if asked.critic is None else model_of(asked.critic)
    cluster = cluster_of(asked.cluster, asked.devices)
    parts = {**sizes, "actor": model_of(asked.model), "cluster": cluster, "critic": critic}
    return read_document(RlProblem, parts, "question")


def _plan(session: Session, asked: RlRequest) -> RlPlan:
    return find_rl_plan(asked_rl(asked), served_engine, asked.time_limit_s)


def _estimate(session: Session, asked: RlEstimateRequest) -> RankedRl:
    problem = asked_rl(asked)
    division = _division(asked, problem.cluster.num_devices)
    return played(problem, division, served_engine, rollout_tp=asked.rollout_tp, strategy=asked.strategy)


def _division(asked: RlEstimateRequest, total: int) -> Division:
    """Raises DocumentInvalid where the parts contradict one another."""
    if asked.placement == "colocated":
        if asked.synchrony_asked != "synchronous":
            raise DocumentInvalid(
                f"colocated devices generate and train in turns, which is synchronous, not {asked.synchrony_asked}",
                where="/synchrony_asked",
                hint="split them (--placement split), or leave the synchrony out",
            )
        if asked.rollout_devices not in (None, total):
            raise DocumentInvalid(
                f"colocated engines are on all {total:,} devices, not on {asked.rollout_devices:,}",
                where="/rollout_devices",
                hint="split them (--placement split), or leave the number out",
            )
        return Division("colocated", "synchronous", total, total)
    rollout = total // 2 if asked.rollout_devices is None else asked.rollout_devices
    if not 0 < rollout < total:
        raise DocumentInvalid(
            f"{rollout:,} of {total:,} devices generate, so that {total - rollout:,} train",
            where="/rollout_devices",
            hint=f"from 1 to {total - 1:,}" if total > 1 else "split placements have two devices or more",
        )
    return Division("split", asked.synchrony_asked, total - rollout, rollout)


_EXAMPLE = {
    "model": "qwen3-8b",
    "cluster": "dgx-h100",
    "devices": 8,
    "prompts": 64,
    "samples_per_prompt": 8,
    "prompt_tokens": {"kind": "padded", "mean": 300},
    "response_tokens": {"kind": "padded", "mean": 1200, "percentiles": {"99.9": 4000}},
    "longest_response": 4096,
}
RL_PLAN = Operation(
    name="create_rl_plan",
    summary="Which devices should generate and which train in a step of RL, and in which layouts?",
    description="Colocated or split, synchronous or not, with the trainer's proved layout and the engines' best one,"
    " and a bound.\nIt is not stored and has no files.",
    request=RlRequest,
    answer=RlPlan,
    work=_plan,
    path="/v1/rl-plans",
    method="POST",
    tag="plans",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    body=RlRequest,
    example=_EXAMPLE,
    searches=lambda asked: True,
    command="rl plan",
)
RL_ESTIMATE = Operation(
    name="create_rl_estimate",
    summary="Predict a step of RL as it is run",
    description="Stage by stage; what of the layouts is not given is the best.",
    request=RlEstimateRequest,
    answer=RankedRl,
    work=_estimate,
    path="/v1/rl-estimates",
    method="POST",
    tag="questions",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    body=RlEstimateRequest,
    example={**_EXAMPLE, "placement": "colocated", "rollout_tp": 1},
    searches=lambda asked: True,
    command="rl estimate",
)
