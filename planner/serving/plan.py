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
    value: float = Field(description="in the objective's unit")
    cost_per_million_output_tokens: float | None = Field(default=None, ge=0)


class PromiseCost(Document):
    """What one promise costs: the best without it."""

    promise: str = Field(description="ttft, tpot or end_to_end")
    limit_s: float
    value: float = Field(description="the best without this promise, in the objective's unit")
    gain: float = Field(description="how much better that is: 0.25 = a quarter")


class TrafficChange(Document):
    """What the best deployment gives under another traffic."""

    change: str
    ttft_s: float | None
    tpot_s: float | None
    output_tokens_per_s: float
    meets: bool


class ServingPlan(Document):
    """The answer to one serving question."""

    schema_version: Literal[1] = 1
    problem: ServingProblem
    status: Literal["optimal", "feasible"] = Field(description="optimal: proved; feasible: the time limit came first")
    unit: str = Field(description="of values: what the objective counts")
    best: RankedDeployment
    runners_up: tuple[RankedDeployment, ...] = Field(
        default=(), description="the best found of each other engine and kind (aggregated or not)"
    )
    pareto: tuple[RankedDeployment, ...] = Field(
        default=(), description="tokens a second and user against tokens a second and device, best of each"
    )
    bound: float = Field(description="what no deployment of the space can beat, in the objective's unit")
    gap: float = Field(ge=0, description="how far the bound is from the best, as part of the bound")
    proof: str = Field(description="of what the bound is a bound, in one sentence")
    num_deployments: int = Field(ge=0, description="deployments of the space")
    num_evaluated: int = Field(ge=0, description="instance layouts that were evaluated; bounds ruled out the others")
    refused: dict[str, int] = Field(default_factory=dict, description="layouts outside of the space, by reason")
    why: tuple[str, ...] = Field(default=(), description="why this layout, and what binds")
    why_not_other_kind: str = Field(default="", description="why not disaggregated, or why not aggregated")
    promise_costs: tuple[PromiseCost, ...] = ()
    traffic_changes: tuple[TrafficChange, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def plan_id(self) -> str:
        """Identity: the hash of the document."""
        return self.content_hash()
