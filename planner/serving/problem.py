"""The serving question: model, cluster, traffic, promises, objective, constraints."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from planner.model.spec import ModelSpec
from planner.serving.layout import InstanceLayout, InstanceSettings
from planner.serving.traffic import Lengths, ServiceLevel, ServingTraffic
from planner.serving.words import ENGINES, CacheFormat, WeightFormat
from profiles.cluster import Cluster
from profiles.document import Document

ServingObjective = Literal["cheapest", "throughput", "pareto", "fewest_devices"]
"""``cheapest``: least money for a token under the promises, so most tokens a second and device used.  ``throughput``:
most output tokens a second under them with the devices of the cluster.  ``pareto``: the curve of tokens a second and
user against tokens a second and device.  ``fewest_devices``: least devices that answer ``requests_per_s`` under them;
with ``requests_per_s`` the others mean the same, since the tokens are given then."""
Disaggregation = Literal["any", "never", "always"]
PINNABLE = (*InstanceLayout.model_fields, *(name for name in InstanceSettings.model_fields if name != "speculation"))
"""Fields of an instance that a question may fix."""


class ServingConstraints(Document):
    """What the answer must respect.  ``pins`` fix fields of every instance (``{"tp": 8}``)."""

    engines: tuple[str, ...] = Field(
        default=(), max_length=16, description="NAME or NAME==RELEASE; none = every engine"
    )
    disaggregation: Disaggregation = "any"
    weights: tuple[WeightFormat, ...] = Field(
        default=(), max_length=8, description="formats that may be used; none = the checkpoint's own"
    )
    kv_cache: tuple[CacheFormat, ...] = Field(
        default=(), max_length=4, description="none = those that the engine has on the device"
    )
    pins: dict[str, int | str | bool | float] = Field(default_factory=dict, max_length=32)
    max_devices: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _known(self) -> Self:
        for said in self.engines:
            name, _, release = said.partition("==")
            if name not in ENGINES or ("==" in said and not release):
                raise ValueError(f"there is no engine {said!r}: NAME or NAME==RELEASE of {', '.join(ENGINES)}")
        unknown = sorted(set(self.pins) - set(PINNABLE))
        if unknown:
            raise ValueError(f"{unknown[0]} cannot be pinned; these can: {', '.join(PINNABLE)}")
        for name, value in self.pins.items():
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if name in InstanceLayout.model_fields and not whole:
                raise ValueError(f"{name} = {value!r}: a degree is a whole number of at least 1")
        settings = {name: value for name, value in self.pins.items() if name not in InstanceLayout.model_fields}
        try:
            InstanceSettings.model_validate(settings)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False)[0]
            field = str(wrong["loc"][0])
            raise ValueError(f"{field} = {settings[field]!r} cannot be pinned: {wrong['msg']}") from None
        return self


class ServingProblem(Document):
    """One complete question."""

    schema_version: Literal[1] = 1
    model: ModelSpec
    cluster: Cluster
    traffic: ServingTraffic
    promised: ServiceLevel = ServiceLevel()
    objective: ServingObjective = "throughput"
    constraints: ServingConstraints = ServingConstraints()
    checkpoint: WeightFormat = Field(default="bf16", description="how the checkpoint stores dense weights")
    expert_checkpoint: WeightFormat | None = Field(default=None, description="... and experts; none = the same")

    @model_validator(mode="after")
    def _answerable(self) -> Self:
        if len(self.cluster.pools) > 1:
            raise ValueError(f"cluster {self.cluster.name} has {len(self.cluster.pools)} pools: ask about one of them")
        if self.model.denoiser is not None or self.model.encoder is not None:
            raise ValueError(f"{self.model.name} is no decoder-only language model: it is not served token by token")
        if self.objective == "fewest_devices" and self.traffic.requests_per_s is None:
            raise ValueError("fewest_devices needs requests_per_s: how many requests a second are to be answered")
        most, limit = self.constraints.max_devices, self.cluster.num_devices
        if most is not None and most > limit:
            raise ValueError(f"max_devices = {most:,}, but the cluster has {limit:,} devices")
        longest, positions = longest_tokens(self.traffic), self.model.position_limit
        if positions is not None and longest > positions:
            raise ValueError(
                f"requests of {longest:,} tokens (input and output) are longer than the {positions:,} positions of"
                f" {self.model.name}"
            )
        return self

    @property
    def num_devices(self) -> int:
        """Devices that a deployment may use."""
        return min(self.cluster.num_devices, self.constraints.max_devices or self.cluster.num_devices)


def longest_tokens(traffic: ServingTraffic) -> int:
    """Tokens of the longest usual request: the largest of a table or a range, else the mean."""
    return _longest(traffic.input_tokens) + _longest(traffic.output_tokens)


def _longest(lengths: Lengths) -> int:
    if lengths.kind == "table":
        return max(lengths.tokens)
    return lengths.high if lengths.kind == "uniform" and lengths.high else round(lengths.mean or 1)
