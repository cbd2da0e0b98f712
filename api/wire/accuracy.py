"""Wire documents about prediction errors: a list of reports with their figures, and one whole report."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from planner.evidence.accuracy.report_document import AccuracyReport
from profiles.document import Document


class AccuracyGroup(Document):
    """Errors of the predicted step time of some runs, as fractions: 0.1 = 10 %."""

    group: str
    n: int = Field(description="measured runs that chose no constant of the cost model")
    mape: float | None = Field(description="mean of |predicted / measured - 1|")
    median_ape: float | None
    p90_ape: float | None
    bias: float | None = Field(description="geometric mean of predicted / measured, minus one; negative = too fast")
    interval_coverage: float | None = Field(description="part of the runs inside their interval")


class AccuracyGroups(Document):
    """The same runs cut three ways; the last group of each is `all`."""

    source: tuple[AccuracyGroup, ...]
    device: tuple[AccuracyGroup, ...]
    model: tuple[AccuracyGroup, ...]


class AccuracySummary(Document):
    """A report without its rows."""

    name: str
    version: int
    sha: str = Field(description="the report's id: the ETag to send with If-Match")
    created_at: datetime | None = Field(default=None, description="null = built in")
    builtin: bool
    num_rows: int
    num_judged: int = Field(description="rows that chose no constant of the cost model")
    num_fitted: int
    interval_level: float = Field(description="of the intervals that interval_coverage counts")
    groups: AccuracyGroups


class AccuracyListing(Document):
    """Every report."""

    reports: tuple[AccuracySummary, ...]


class AccuracyView(Document):
    """A report whole, with a row a run."""

    name: str
    version: int
    sha: str = Field(description="the report's id: the ETag to send with If-Match")
    created_at: datetime | None = Field(default=None, description="null = built in")
    builtin: bool
    document: AccuracyReport
