"""The question of a sweep: its axes, and what all cells share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from planner.question.older_documents import problem_of_today
from planner.question.problem import Constraints
from planner.question.work_kind import WorkKind
from profiles.document import Document

Count = Annotated[int, Field(gt=0)]
Name = Annotated[str, Field(min_length=1)]


class SweepAxes(Document):
    """What is combined."""

    schema_version: Literal[2] = 2
    models: tuple[Name, ...] = Field(min_length=1, description="built-in names, or paths of descriptions")
    clusters: tuple[Name, ...] = Field(min_length=1, description="catalogue names, or paths of cluster files")
    device_counts: tuple[Count, ...] = Field(
        default=(), description="each cluster is scaled to each; empty = every cluster as it is described"
    )
    sequence_lengths: tuple[Count, ...] = Field(min_length=1, description="tokens a sample")
    global_batch_sizes: tuple[Count, ...] = Field(min_length=1, description="samples a step")


class SweepQuestion(WorkKind, SweepAxes):
    """Every combination of the axes is one planning problem; the rest holds for all of them."""

    constraints: Constraints = Field(default_factory=Constraints)

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, data: Any) -> Any:
        return problem_of_today(data)

    @property
    def num_cells(self) -> int:
        """Combinations of all axes, an axis value that is given twice counted once."""
        devices = len(set(self.device_counts)) or 1
        lengths, batches = len(set(self.sequence_lengths)), len(set(self.global_batch_sizes))
        return len(set(self.models)) * len(set(self.clusters)) * devices * lengths * batches
