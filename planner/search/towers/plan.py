"""The answer, a ``TowersPlan``: the best of each place that a tower may have, and which is the fastest."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.plan.plan import MemoryBill, StagePlan
from planner.question.problem import Problem
from profiles.document import Document

PlaceName = Literal["first_stage", "same_devices", "own_devices"]
PLACE_WORDS: dict[PlaceName, str] = {
    "first_stage": "on the language model's first stage, in its layout",
    "same_devices": "on the language model's devices, in a layout of its own",
    "own_devices": "on devices of its own",
}


class TowerPart(Document):
    """The tower in a layout of its own: its grid, times of a micro-batch, and memory of one device."""

    devices: int = Field(gt=0)
    tp: int = Field(gt=0)
    dp: int = Field(gt=0)
    samples_per_rank: int = Field(gt=0, description="samples of a micro-batch on one data-parallel rank")
    frozen: bool
    forward_s: float
    backward_s: float = Field(description="0 of a frozen tower")
    late_s: float = Field(description="once a step: exposed gradient reduction, optimizer")
    bridge_s: float = Field(description="its tokens to the language model, or their gradients back, one micro-batch")
    parameters_per_device: int = Field(description="that learn")
    in_flight_microbatches: int
    peak_memory_bytes: MemoryBill = Field(description="on the same devices: beside the language model's")


class LanguagePart(Document):
    """The language model: its devices, strategy and stages (with the tower, where it is on the first)."""

    devices: int = Field(gt=0)
    strategy: dict[str, Any]
    stages: tuple[StagePlan, ...]
    step_time_s: float = Field(description="of this part alone")


class TowerPlace(Document):
    """The best plan with the tower in one place."""

    place: PlaceName
    step_time_s: float
    tokens_per_s: float
    model_flops_utilization: float = Field(description="tower and language model, over the peak of all devices")
    peak_memory_bytes: int = Field(description="of the fullest device")
    fits_probability: float
    language: LanguagePart
    tower: TowerPart | None = Field(description="null: it is part of the language model's first stage")


class SplitAnswer(Document):
    """Devices of its own: the best that was found for one number of them."""

    tower_devices: int
    step_time_s: float | None = Field(default=None, description="null: not looked at, or no plan")
    lower_bound_s: float | None = Field(description="no plan with this split is faster; null: there is none")
    reason: str | None = None


class TowersPlan(Document):
    """Where the tower stands best, each place's best plan, and how much faster another plan could be."""

    schema_version: Literal[1] = 1
    problem: Problem
    modality: str
    places: tuple[TowerPlace, ...] = Field(min_length=1, description="the fastest first")
    refused: dict[str, str] = Field(description="places without a plan, and why")
    splits: tuple[SplitAnswer, ...] = Field(description="numbers of devices of its own, the fewest first")
    memory_limit_bytes: int
    lower_bound_s: float = Field(description="no plan of these places is faster")
    gap: float
    searches: int = Field(description="searches of the language model alone")
    assumptions: tuple[str, ...]

    @property
    def best(self) -> TowerPlace:
        """The fastest place."""
        return self.places[0]
