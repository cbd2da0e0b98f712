"""The answer: the best deployment, what it gives, the proof, and what was beside it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.serving.layout import Deployment
from planner.serving.predict.prediction import ServingPrediction
from planner.serving.problem import ServingProblem
from profiles.document import Document


class RankedDeployment(Document):
    """A deployment and what it gives under the load at which it is judged."""

    deployment: Deployment
    prediction: ServingPrediction
    concurrency: float = Field(gt=0, description="requests in flight at that load, of the whole deployment")
    meets: bool = Field(description="whether every promise is kept")
    cost_per_million_output_tokens: float | None = Field(default=None, ge=0)


class ServingPlan(Document):
    """The answer to one serving question."""

    schema_version: Literal[1] = 1
    problem: ServingProblem
    best: RankedDeployment
    runners_up: tuple[RankedDeployment, ...] = ()
    pareto: tuple[RankedDeployment, ...] = Field(
        default=(), description="tokens a second and user against tokens a second and device, best of each"
    )
    bound: float = Field(ge=0, description="what no deployment of the space can beat, in the objective's unit")
    gap: float = Field(ge=0, description="(bound - best) / bound, for objectives that are maximised")
    num_deployments: int = Field(ge=0, description="deployments of the space")
    num_evaluated: int = Field(ge=0, description="... that were evaluated; bounds ruled the others out")
    refused: dict[str, int] = Field(default_factory=dict, description="deployments outside of the space, by reason")
    notes: tuple[str, ...] = ()
