"""The answer: the best deployment, its step, the proof, and what was beside it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.rl.deployment import RlDeployment
from planner.rl.problem import RlProblem
from planner.rl.words import Stage
from profiles.document import Document


class RlPrediction(Document):
    """One step of a deployment in steady state."""

    step_s: float = Field(gt=0)
    stages_s: dict[Stage, float] = Field(description="by stage; those that overlap with others count whole")
    samples_per_s: float = Field(gt=0)
    tokens_per_s_per_device: float = Field(gt=0, description="tokens of samples, prompts among them")
    engines_idle: float = Field(ge=0, le=1, description="part of the step in which the engines do nothing")
    trainer_idle: float = Field(ge=0, le=1)
    tail_s: float = Field(ge=0, description="generation with less than a quarter of the most samples at once")
    mean_running: float = Field(ge=0, description="samples of an engine instance that run at once, mean")
    trainer_peak_bytes: float = Field(ge=0, description="a device's, while it trains")


class RankedRl(Document):
    """A deployment and its step."""

    deployment: RlDeployment
    prediction: RlPrediction
    slower_by: float = Field(default=0.0, description="step over the best one's, minus one")


class RlPlan(Document):
    """The answer to one question."""

    schema_version: Literal[1] = 1
    problem: RlProblem
    best: RankedRl
    runners_up: tuple[RankedRl, ...] = Field(default=(), description="the best of other placements and divisions")
    lower_bound_s: float = Field(ge=0)
    gap: float = Field(ge=0, description="(step - bound) / step")
    num_divisions: int = Field(description="divisions of the devices between trainer and engines")
    num_evaluated: int = Field(description="... of which so many were played; bounds ruled the others out")
    reasons: tuple[str, ...] = Field(default=(), description="why this one, in sentences")
    notes: tuple[str, ...] = ()
