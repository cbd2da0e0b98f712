"""The accuracy report as a document: what ``meshwright accuracy -o json`` prints, checked.

Its rows and their figures are checked in full; the tables beside them (ranking, memory, calibration, ...) are kept as
they were printed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from profiles.document import Document

Text = Annotated[str, Field(max_length=1_000)]
Seconds = Annotated[float, Field(gt=0)]
Bytes = Annotated[int, Field(ge=0)]
Table = tuple[dict[str, Any], ...]
PUBLISHED = "published"
"""Name of the report that is part of every release: runs whose figures stand in papers."""


class AccuracyRow(Document):
    """One measured run and its prediction."""

    id: Text
    source: Text = Field(description="where the measurement was published")
    group: Text
    model: Text | None = Field(default=None, description="null = not stated")
    device: Text | None = Field(default=None, description="null = not stated")
    num_devices: int | None = Field(default=None, gt=0)
    fitted: bool = Field(description="whether it chose a constant of the cost model: then it judges nothing")
    predicted_step_time_s: Seconds
    interval: tuple[Seconds, Seconds] = Field(description="seconds")
    interval_level: float = Field(gt=0, lt=1)
    measured_step_time_s: Seconds | None
    baseline_step_time_s: Seconds | None = Field(default=None, description="of a constant utilization")
    predicted_peak_memory_bytes: Bytes
    measured_peak_memory_bytes: Bytes | None
    memory_meaning: Text
    fits: bool
    fits_judged: bool
    ran_out_of_memory: bool
    ranking_group: Text
    factors_step_time_s: Seconds | None = None
    calibrated_step_time_s: Seconds | None = None
    calibrated_interval: tuple[Seconds, Seconds] | None = None
    calibrated_peak_memory_bytes: Bytes | None = None
    held_out: bool | None = None

    @model_validator(mode="after")
    def _interval_in_order(self) -> Self:
        if self.interval[0] > self.interval[1]:
            raise ValueError("the interval ends before it begins")
        return self


class AccuracyReport(Document):
    """Predicted and measured runs, and tables of their errors."""

    by: Literal["source", "device", "model"]
    interval_level: float = Field(gt=0, lt=1)
    num_judged: int = Field(ge=0)
    num_fitted: int = Field(ge=0)
    rows: tuple[AccuracyRow, ...]
    groups: Table
    fitted_groups: Table
    ranking_groups: Table
    unmapped: dict[str, Any]
    headline: Table
    left_out: dict[str, Any] | None = None
    optimism: dict[str, Any] | None = None
    fit_chances: dict[str, Any] | None = None
    telling_apart: dict[str, Any] | None = None
    recommended_picks: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None
    figures: Table = ()


@cache
def published_report() -> AccuracyReport:
    """The report of this release on runs whose figures stand in papers; ``make accuracy`` writes it."""
    text = (files("planner.evidence.accuracy") / "published_report.json").read_text(encoding="utf-8")
    return AccuracyReport.model_validate_json(text)
