"""The question, one hashed ``Problem``: model + cluster + workload + constraints + objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.model.spec import ModelSpec
from planner.question.agreement import contradictions
from planner.question.factors import AppliedCalibration
from planner.question.older_documents import constraints_of_today, problem_of_today
from planner.question.reliability import Reliability
from planner.question.work_kind import WorkKind
from profiles.cluster import Cluster
from profiles.document import Document
from profiles.prediction.reference import ProfileReference

ObjectiveName = Literal["step_time", "devices", "cost", "tokens_per_day"]
Preference = Literal["recommended", "fastest"]

ANY = "any"
"""Every back-end that files can be written for and that trains on these devices."""
UNRESTRICTED = "unrestricted"
"""The whole declared space under the neutral physics, for study: what no back-end can run yet is in it."""
USUAL_CHANCE = 0.95
"""Chance to fit that a plan must have at least (docs/decisions/0036)."""
BACKEND_PATTERN = r"^[a-z0-9][a-z0-9-]*(==[A-Za-z0-9][A-Za-z0-9._-]*)?$"


class StepSizes(Document):
    """One optimizer step: how many samples of how many tokens."""

    schema_version: Literal[1] = 1
    global_batch_size: int = Field(gt=0, description="samples a step")
    sequence_length: int = Field(gt=0, description="tokens a sample")


class Workload(WorkKind, StepSizes):
    """One optimizer step: how many samples of how many tokens, in which precision."""

    @property
    def tokens_per_step(self) -> int:
        """Tokens of all sequences of a step, padding included."""
        return self.global_batch_size * self.trained.sequences_per_sample * self.sequence_length


class Constraints(Document):
    """What the answer must respect.

    ``pins`` fix a strategy field (``{"tp": 8}``); ``forbids`` exclude an axis or a switch (``("cp",)`` = cp must be
    1; ``("recompute",)`` = none).  ``backends`` names the software that may run the plan, each ``NAME`` or
    ``NAME==RELEASE``: the plan is one of these back-ends' own space, under its own physics.  ``fits`` and
    ``memory_margin_fraction`` bound the memory; where both are given both hold.
    """

    schema_version: Literal[2] = 2
    pins: dict[str, int | str | bool] = Field(default_factory=dict)
    forbids: tuple[str, ...] = ()
    backends: tuple[Annotated[str, Field(pattern=BACKEND_PATTERN)], ...] = Field(default=(ANY,), min_length=1)
    memory_margin_fraction: float | None = Field(
        default=None, ge=0, lt=1, description="part of device memory kept free; none = as `fits` asks"
    )
    fits: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        exclude_if=lambda value: value is None,
        description="least chance that the fullest device holds the plan, 0.95 where no margin is given either",
    )
    max_step_time_s: float | None = Field(default=None, gt=0)
    min_tokens_per_s: float | None = Field(default=None, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, data: Any) -> Any:
        return constraints_of_today(data)

    @model_validator(mode="before")
    @classmethod
    def _room(cls, data: Any) -> Any:
        """A margin alone means what it always meant; who says neither gets the usual chance, written out."""
        if not isinstance(data, Mapping) or data.get("fits") is not None:
            return data
        return data if data.get("memory_margin_fraction") is not None else {**data, "fits": USUAL_CHANCE}

    @field_validator("backends")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        plain = [name.partition("==")[0] for name in names]
        twice = sorted({name for name in plain if plain.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} named twice: one release of a back-end at a time")
        alone = [name for name in plain if name in (ANY, UNRESTRICTED)]
        if alone and len(plain) > 1:
            raise ValueError(f"{alone[0]} stands alone: drop it, or drop the others")
        return names


class Objective(Document):
    """What is best: the least step time, devices (for a target) or cost per token, or the most tokens a day.

    Tokens a day count failures (``reliability``): devices that no plan uses stand by as spare nodes.
    """

    schema_version: Literal[1] = 1
    minimize: ObjectiveName = "step_time"
    price_per_device_hour: float | None = Field(default=None, gt=0, description="currency units; cost objective only")
    prefer: Preference = Field(
        default="fastest",
        exclude_if=lambda value: value == "fastest",
        description="recommended: of the plans that the model cannot tell from the fastest one, the surest to fit, then"
        " the simplest; absent = fastest, which is what questions of earlier versions mean",
    )
    reliability: Reliability | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="tokens_per_day objective only: storage, failures, repairs",
    )

    @model_validator(mode="after")
    def _reliability_of_tokens(self) -> Self:
        wanted = self.minimize == "tokens_per_day"
        if wanted and self.reliability is None:
            raise ValueError("tokens_per_day needs reliability: at least its storage_bandwidth_bytes_per_s")
        if not wanted and self.reliability is not None:
            raise ValueError(f"reliability is for tokens_per_day: {self.minimize} does not count failures")
        if self.reliability is not None and self.reliability.spare_nodes is not None:
            raise ValueError("reliability: spare_nodes is what tokens_per_day finds; leave it out")
        return self


class Problem(Document):
    """A complete planning question.  ``problem_id`` is its content hash."""

    schema_version: Literal[2] = 2
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
        description="factors of a back-end's physics on this device; absent = none",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, data: Any) -> Any:
        return problem_of_today(data)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """The workload is one of this model."""
        found = contradictions(self.model, self.workload)
        if found:
            raise ValueError("; ".join(f"{pointer}: {message}" for pointer, message in found))
        return self

    @property
    def profile_id(self) -> str | None:
        """Content hash of the measurements; None when there are none."""
        return None if self.profile is None else self.profile.profile_id

    @property
    def problem_id(self) -> str:
        """SHA-256 of the canonical JSON."""
        return self.content_hash()
