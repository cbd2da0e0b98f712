"""What is asked?  Model + cluster + workload + constraints + objective = one hashed ``Problem``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from planner.backends.known_physics import FRAMEWORKS
from planner.calibration.factors import AppliedCalibration
from planner.model.spec import ModelSpec
from planner.physics.physics import TUNED
from profiles.cluster import Cluster
from profiles.document import Document
from profiles.prediction.reference import ProfileReference

Precision = Literal["bf16", "fp16", "fp8"]
OptimizerName = Literal["adam", "adam_bf16_states", "sgd", "muon"]
Target = Literal[
    "any", "megatron", "mindspeed", "megatron-bridge", "deepspeed", "torchtitan", "native", "accelerate", "maxtext"
]
ObjectiveName = Literal["step_time", "devices", "cost"]


class Workload(Document):
    """One optimizer step: how many samples of how many tokens, in which precision."""

    schema_version: Literal[1] = 1
    global_batch_size: int = Field(gt=0, description="samples a step")
    sequence_length: int = Field(gt=0, description="tokens a sample")
    precision: Precision = "bf16"
    optimizer: OptimizerName = "adam"
    gradient_dtype: Literal["fp32", "bf16"] = Field(
        default="fp32", description="dtype in which gradients are accumulated and reduced"
    )
    images_per_sample: int = Field(default=0, ge=0, description="images a sample, for models with a vision tower")
    dropout: bool = False


class Constraints(Document):
    """What the answer must respect.

    ``pins`` fix a strategy field (``{"tp": 8}``); ``forbids`` exclude an axis or a switch (``("cp",)`` = cp must be
    1; ``("recompute",)`` = none).  ``target`` restricts the space to what that back-end can run.
    """

    schema_version: Literal[1] = 1
    pins: dict[str, int | str | bool] = Field(default_factory=dict)
    forbids: tuple[str, ...] = ()
    target: Target = "any"
    memory_margin_fraction: float = Field(
        default=0.06, ge=0, lt=1, description="part of device memory kept free for fragmentation and surprises"
    )
    max_step_time_s: float | None = Field(default=None, gt=0)
    min_tokens_per_s: float | None = Field(default=None, gt=0)


class Objective(Document):
    """What is minimised: step time, devices (under a time or rate target), or cost per token."""

    schema_version: Literal[1] = 1
    minimize: ObjectiveName = "step_time"
    price_per_device_hour: float | None = Field(default=None, gt=0, description="currency units; cost objective only")


class Problem(Document):
    """A complete planning question.  ``problem_id`` is its content hash."""

    schema_version: Literal[1] = 1
    model: ModelSpec
    cluster: Cluster
    workload: Workload
    constraints: Constraints = Field(default_factory=Constraints)
    objective: Objective = Field(default_factory=Objective)
    profile: ProfileReference | None = Field(
        default=None, description="measurements by content; None = datasheet predictions only"
    )
    calibration: AppliedCalibration | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="factors of a framework on this device; absent = none, so that ids without one stay as they were",
    )
    framework: str = Field(
        default=TUNED.name,
        exclude_if=lambda value: value == TUNED.name,
        description="whose software runs the plan: its launches, fusion and memory; absent = a tuned Megatron-Core",
    )

    @field_validator("framework")
    @classmethod
    def _known_framework(cls, name: str) -> str:
        if name not in FRAMEWORKS:
            raise ValueError(f"no framework is called {name!r}; choose among {', '.join(sorted(FRAMEWORKS))}")
        return name

    @property
    def profile_id(self) -> str | None:
        """Content hash of the measurements; None when there are none."""
        return None if self.profile is None else self.profile.profile_id

    @property
    def problem_id(self) -> str:
        """SHA-256 of the canonical JSON."""
        return self.content_hash()
