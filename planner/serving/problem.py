"""The serving question: model, cluster, traffic, promises, objective, constraints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.spec import ModelSpec
from planner.serving.traffic import ServiceLevel, Traffic
from planner.serving.words import CacheFormat, WeightFormat
from profiles.cluster import Cluster
from profiles.document import Document

ServingObjective = Literal["cheapest", "throughput", "pareto", "fewest_devices"]
"""``cheapest``: least money for a token under the promises.  ``throughput``: most output tokens a second and device
under them.  ``pareto``: the curve of tokens a second and user against tokens a second and device.
``fewest_devices``: least devices that answer ``requests_per_s`` under them."""
Disaggregation = Literal["any", "never", "always"]


class ServingConstraints(Document):
    """What the answer must respect.  ``pins`` fix fields of every instance (``{"tp": 8}``)."""

    engines: tuple[str, ...] = Field(default=(), description="NAME or NAME==RELEASE; none = every engine")
    disaggregation: Disaggregation = "any"
    weights: tuple[WeightFormat, ...] = Field(
        default=(), description="formats that may be used; none = the checkpoint's own"
    )
    kv_cache: tuple[CacheFormat, ...] = Field(default=(), description="none = those that the engine has on the device")
    pins: dict[str, int | str | bool] = Field(default_factory=dict)
    max_devices: int | None = Field(default=None, gt=0)


class ServingProblem(Document):
    """One complete question."""

    schema_version: Literal[1] = 1
    model: ModelSpec
    cluster: Cluster
    traffic: Traffic
    promised: ServiceLevel = ServiceLevel()
    objective: ServingObjective = "throughput"
    constraints: ServingConstraints = ServingConstraints()
    checkpoint: WeightFormat = Field(default="bf16", description="how the checkpoint stores dense weights")
    expert_checkpoint: WeightFormat | None = Field(default=None, description="... and experts; none = the same")
