"""A calibration: factors of one back-end on one device, and the errors before and after; a frozen document.

``calibration_id`` is the hash of everything but the date, so that the same rows give the same id.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from planner.predict.physics.physics import TUNED
from planner.question.factors import SPREAD_ROWS, AppliedCalibration, Factors
from profiles.document import Document, canonical_json


class ErrorFigures(Document):
    """How wrong the predictions are: |predicted / measured - 1|, and the geometric mean of the ratio minus one."""

    n: int = Field(ge=0)
    median: float | None = None
    p90: float | None = None
    bias: float | None = None


class Rung(Document):
    """One step of the ladder: the factors that were free, and the error of rows that each fit had not seen."""

    factors: tuple[str, ...] = Field(description="free factors; empty = no calibration")
    leave_one_out: ErrorFigures | None = Field(default=None, description="None: nothing is left to fit on")
    mean_abs_log: float | None = Field(default=None, description="mean |ln(predicted / measured)|: what is compared")
    taken: bool = Field(description="whether this step was taken")


class HeavyRow(Document):
    """A row whose absence moves the prediction most."""

    row: str
    moves_prediction_by: float = Field(description="largest change of another row's prediction, as a part of it")


class FittedQuantity(Document):
    """Step time or memory: errors before, in the sample, and of left-out rows; the ladder that chose the factors."""

    n: int = Field(ge=0, description="rows")
    num_configurations: int = Field(ge=0, description="distinct runs; rows of one configuration are left out together")
    before: ErrorFigures
    after_in_sample: ErrorFigures
    after_leave_one_out: ErrorFigures | None = Field(default=None, description="None: unknown, one configuration only")
    ladder: tuple[Rung, ...] = ()
    standard_errors: dict[str, float] = Field(default_factory=dict, description="of the fitted factors, in their units")
    heaviest: tuple[HeavyRow, ...] = ()
    sigma: float | None = Field(
        default=None, ge=0, description="80th percentile of |ln(predicted / measured)| of left-out rows, over 1.2816"
    )


class SourceUsed(Document):
    """A file or batch that the rows came from."""

    name: str
    sha256: str
    rows: int = Field(ge=0)


class Calibration(Document):
    """Factors of one back-end and version on one device, with the evidence for them."""

    schema_version: Literal[1] = 1
    framework: str
    framework_version: str = ""
    device: str = Field(min_length=1)
    traits: str = Field(
        default=TUNED.name,
        description="back-end whose launches, kernels and memory the corrected predictions had",
    )
    profile_id: str | None = Field(default=None, description="measured inputs that were used; None = datasheet")
    factors: Factors
    time: FittedQuantity | None = None
    memory: FittedQuantity | None = None
    memory_meaning: tuple[str, ...] = Field(default=(), description="what the readings count: allocated, reserved, ...")
    sources: tuple[SourceUsed, ...] = ()
    software: str = Field(description="release of the planner whose predictions were corrected")
    created_at: str = Field(default="", description="ISO 8601, UTC; no part of the identity")

    @property
    def calibration_id(self) -> str:
        """SHA-256 of the canonical JSON without the date."""
        content = self.model_dump(mode="json", exclude={"created_at"})
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    def applied(self) -> AppliedCalibration:
        """What a problem carries of it."""
        time = self.time
        enough = time is not None and time.n >= SPREAD_ROWS and time.num_configurations > 1
        return AppliedCalibration(
            calibration_id=self.calibration_id,
            framework=self.framework,
            framework_version=self.framework_version,
            device=self.device,
            factors=self.factors,
            num_rows=time.n if time is not None else 0,
            fitted_on_profile=self.profile_id,
            framework_sigma=time.sigma if time is not None and enough and time.sigma else None,
        )
