"""The diagnosis of a run: predicted and measured side by side, what was found, and what no file tells."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.evidence.calibration.document import Calibration
from profiles.document import Document

FindingKind = Literal[
    "another-run",
    "another-device",
    "changed-flag",
    "out-of-memory",
    "more-memory",
    "slow-rank",
    "slow-link",
    "uneven-experts",
    "missing-overlap",
    "unfused-kernel",
    "host-gaps",
    "drift",
    "slow-steps",
]


class StepTimes(Document):
    """Times of the steps of one source, the warm-up left out."""

    source: str = Field(description="the file")
    num_steps: int
    median_s: float
    mean_s: float
    p10_s: float
    p90_s: float


class TermRow(Document):
    """One part of the step.  Measured: the mean over the ranks and steps of the traces."""

    term: str
    words: str
    predicted_s: float | None = Field(description="what of it shows in the step; null: it is no part of the plan's")
    measured_s: float | None = Field(default=None, description="what of it shows in the step; null = not measured")
    hidden_s: float | None = Field(default=None, description="measured, and hidden behind computing")
    waiting_s: float | None = Field(
        default=None, description="of measured_s: waiting for the rank that came last; null: one rank, or no match"
    )


class OperatorRow(Document):
    """Computing of one operator class."""

    operator: str
    predicted_s: float | None
    measured_s: float | None


class RankRow(Document):
    """One traced rank: the mean of its steps."""

    rank: int
    stage: int | None
    step_s: float
    own_s: float = Field(description="step less the communication that shows: computing, copies, gaps")
    communication_s: float = Field(description="communication that shows")
    waiting_s: float | None = Field(description="of it: waiting for other ranks")
    idle_s: float = Field(description="nothing runs on the device; on a CPU: between operators")


class MemoryRow(Document):
    """Peak memory of a rank, or the stage's prediction alone."""

    stage: int
    rank: int | None
    predicted_bytes: int = Field(description="of the stage's fullest rank")
    measured_bytes: int | None
    meaning: str = Field(default="", description="what the reading counts: reserved, allocated")


class RunFinding(Document):
    """One thing that makes the run differ from the plan."""

    kind: FindingKind
    what: str
    seconds: float | None = Field(description="what it costs a step; null: it cannot be told in seconds")
    evidence: tuple[str, ...] = Field(description="file, and line or rank")
    advice: str = Field(description="what to do")


class FileUse(Document):
    """What was read from a file, or why nothing."""

    name: str
    read_as: str = Field(default="", description="the format; empty = not recognised")
    used_for: tuple[str, ...] = ()
    not_used: str = Field(default="", description="why it says nothing here")


class Diagnosis(Document):
    """Why a run differs from its plan."""

    schema_version: Literal[1] = 1
    plan_id: str
    same_run: bool = Field(description="false: the files are of another run than the plan's, or of another device")
    predicted_step_s: float
    predicted_interval_s: tuple[float, float]
    as_run_step_s: float | None = Field(
        default=None, description="the prediction of the strategy and flags that the log states, where they differ"
    )
    step: StepTimes | None = None
    slower_by: float | None = Field(default=None, description="measured median over predicted, minus one")
    terms: tuple[TermRow, ...]
    operators: tuple[OperatorRow, ...] = ()
    ranks: tuple[RankRow, ...] = ()
    memory: tuple[MemoryRow, ...] = ()
    findings: tuple[RunFinding, ...] = Field(description="another run first, then the most seconds first")
    unexplained_s: float | None = Field(
        default=None, description="measured less predicted less what the findings cost; null: no step time"
    )
    calibration: Calibration | None = Field(
        default=None, description="makes the plan's predictions agree with this run; null: it says too little"
    )
    calibrated_step_s: float | None = None
    not_measured: tuple[str, ...] = Field(description="what no file tells, and what would")
    files: tuple[FileUse, ...]
