"""One engine instance, and a deployment of several.

The axes of an instance: ``pp`` stages of ``tp * attention_dp * cp`` devices.  Attention splits its heads over ``tp``,
its requests over ``attention_dp``, the tokens of a prompt over ``cp``.  The same devices hold the experts: ``ep``
groups of experts, each expert split over ``etp = tp * attention_dp * cp / ep``.  ``dcp`` of the ``tp`` devices share
the keys and values of a token instead of repeating them (decode context parallelism).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.serving.words import CacheFormat, EngineName, Role, WeightFormat
from profiles.document import Document


class Formats(Document):
    """Number formats: of dense weights and their matmuls, of experts, and of keys and values."""

    weights: WeightFormat = "bf16"
    experts: WeightFormat | None = Field(default=None, description="none = as the dense weights")
    kv_cache: CacheFormat = "bf16"

    @property
    def of_experts(self) -> WeightFormat:
        """The format of experts' weights."""
        return self.experts or self.weights


class InstanceLayout(Document):
    """The axes of one engine instance."""

    tp: int = Field(default=1, ge=1)
    attention_dp: int = Field(default=1, ge=1)
    cp: int = Field(default=1, ge=1, description="context parallelism of prompts")
    dcp: int = Field(default=1, ge=1, description="devices of tp that share a token's keys and values")
    pp: int = Field(default=1, ge=1)
    ep: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.stage_devices % self.ep:
            raise ValueError(f"ep = {self.ep} does not divide tp x attention_dp x cp = {self.stage_devices}")
        if self.tp % self.dcp:
            raise ValueError(f"dcp = {self.dcp} does not divide tp = {self.tp}")
        return self

    @property
    def stage_devices(self) -> int:
        """Devices of one pipeline stage."""
        return self.tp * self.attention_dp * self.cp

    @property
    def etp(self) -> int:
        """Devices that share one expert."""
        return self.stage_devices // self.ep

    @property
    def num_devices(self) -> int:
        """Devices of the instance."""
        return self.stage_devices * self.pp


class Speculation(Document):
    """Speculative decoding: a draft proposes tokens, one pass of the model checks them."""

    method: Literal["mtp", "eagle", "eagle3", "ngram", "draft_model"]
    num_tokens: int = Field(ge=1, le=64, description="drafted tokens a pass")
    draft_parameters: int | None = Field(default=None, gt=0, description="of a draft model or head of its own")


class InstanceSettings(Document):
    """What an engine is told besides its axes; none = the engine's own default for the model and device."""

    max_num_sequences: int | None = Field(default=None, ge=1, description="requests that run at once, an instance's")
    max_num_batched_tokens: int | None = Field(default=None, ge=1, description="tokens of one iteration")
    chunked_prefill: bool = Field(default=True, description="a prompt may be cut between iterations")
    memory_fraction: float | None = Field(default=None, gt=0, lt=1, description="of device memory the engine may use")
    cache_block_tokens: int | None = Field(default=None, ge=1)
    prefix_caching: bool = True
    cuda_graphs: bool = True
    host_cache_bytes: int = Field(default=0, ge=0, description="keys and values kept in host memory, a device's")
    speculation: Speculation | None = None
    expert_exchange: str | None = Field(default=None, description="all-to-all of experts, in the engine's own word")
    redundant_experts: int = Field(
        default=0, ge=0, description="copies of routed experts, so that ep need not divide their number"
    )


class InstanceGroup(Document):
    """``num_instances`` equal engine instances with one role."""

    role: Role = "aggregated"
    num_instances: int = Field(default=1, ge=1)
    layout: InstanceLayout = InstanceLayout()
    settings: InstanceSettings = InstanceSettings()

    @property
    def num_devices(self) -> int:
        """Devices of the group."""
        return self.num_instances * self.layout.num_devices


class Deployment(Document):
    """What is started: aggregated instances alone, or prefill beside decode instances, of one engine release."""

    schema_version: Literal[1] = 1
    engine: EngineName
    release: str = Field(min_length=1)
    formats: Formats = Formats()
    groups: tuple[InstanceGroup, ...] = Field(min_length=1, max_length=2)

    @model_validator(mode="after")
    def _roles(self) -> Self:
        roles = tuple(group.role for group in self.groups)
        if roles not in (("aggregated",), ("prefill", "decode")):
            raise ValueError("groups are one aggregated group, or a prefill group and then a decode group")
        return self

    @property
    def disaggregated(self) -> bool:
        """Whether prefill and decode run on instances of their own."""
        return len(self.groups) > 1

    @property
    def num_devices(self) -> int:
        """Devices of all instances."""
        return sum(group.num_devices for group in self.groups)
