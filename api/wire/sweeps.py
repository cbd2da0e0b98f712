"""Wire documents of sweeps: many questions asked as one, and what the service says of them.

A sweep's cells are the product of its axes.  The document is that of ``meshwright sweep FILE``, with names and
documents in place of paths.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from api.wire.older_questions import question_of_today
from api.wire.questions import ClusterPart, ModelPart, Name
from planner.answers.sweep.question import SweepQuestion
from planner.operations.question import Devices
from planner.question.problem import Constraints
from planner.question.work_kind import WorkKind
from profiles.document import Document

Count = Annotated[int, Field(gt=0)]
MOST_VALUES = 1_000
"""Of one axis; the service limits their product (``most_cells``)."""

SweepStatus = Literal["running", "cancelling", "finished", "cancelled"]
CellOutcome = Literal["waiting", "running", "planned", "infeasible", "undecided", "refused", "failed", "missing"]
UNANSWERED: frozenset[CellOutcome] = frozenset({"waiting", "running"})


class SweptAxes(Document):
    """What is combined."""

    schema_version: Literal[2] = 2
    models: tuple[ModelPart, ...] = Field(min_length=1, max_length=MOST_VALUES)
    clusters: tuple[ClusterPart, ...] = Field(min_length=1, max_length=MOST_VALUES)
    device_counts: tuple[Devices, ...] = Field(
        default=(), max_length=MOST_VALUES, description="each cluster is scaled to each; empty = as it is described"
    )
    sequence_lengths: tuple[Count, ...] = Field(min_length=1, max_length=MOST_VALUES, description="tokens a sample")
    global_batch_sizes: tuple[Count, ...] = Field(min_length=1, max_length=MOST_VALUES, description="samples a step")


class SweepRequest(WorkKind, SweptAxes):
    """``POST /v1/sweeps``: every combination of the axes is one planning question; the rest holds for all of them."""

    constraints: Constraints = Constraints()
    profile: Name = Field(default="none", description="measurements: none, auto (what is stored), or a name")
    price_per_device_hour: float | None = Field(default=None, gt=0, description="else the clusters' own prices")
    top_k: int = Field(default=3, ge=0, le=100, description="runners-up to report with each plan")
    time_limit_s: float | None = Field(default=None, gt=0, le=86_400, description="of each cell; None = until proved")
    seed: int = Field(default=0, ge=0, lt=2**31)

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, data: Any) -> Any:
        return question_of_today(data)


class SweepProgress(Document):
    """How many cells are where."""

    cells: int
    waiting: int = 0
    running: int = 0
    planned: int = Field(default=0, description="with a plan, proved or with a gap")
    infeasible: int = Field(default=0, description="nothing fits: an answer with its reason")
    undecided: int = Field(default=0, description="the time limit ended before any plan")
    refused: int = Field(default=0, description="the combination is no question")
    failed: int = Field(default=0, description="no answer: a mistake, or workers that died; asked again, tried again")
    missing: int = Field(default=0, description="cancelled before it was answered; asked again, tried again")


class SweepSummary(Document):
    """A sweep as it stands, without its cells."""

    sweep_id: str
    status: SweepStatus
    owner: str
    created_at: datetime
    ended_at: datetime | None = None
    progress: SweepProgress
    question: SweepQuestion = Field(description="the axes; models and clusters by the names that the cells use")


class SweepCellView(Document):
    """One combination and what came of it; figures are null without a plan."""

    model: str
    cluster: str
    num_devices: int
    sequence_length: int
    global_batch_size: int
    outcome: CellOutcome
    fits: bool | None = Field(description="null = not known")
    problem_id: str | None
    job_id: str | None = Field(description="of /v1/jobs; null = not submitted, or answered without one")
    plan_id: str | None
    backend: str | None = Field(default=None, description="the software that runs the plan")
    release: str | None = Field(default=None, description="its release")
    status: str | None = Field(description="of the plan: optimal (proved) or feasible")
    step_time_s: float | None
    step_time_interval_s: tuple[float, float] | None
    tokens_per_s: float | None
    tokens_per_s_per_device: float | None
    model_flops_utilization: float | None
    peak_memory_bytes: int | None
    memory_limit_bytes: int | None
    fits_probability: float | None = Field(description="chance that the fullest device holds its peak; null = unknown")
    lower_bound_s: float | None
    gap: float | None
    cost_per_step: float | None
    cost_per_million_tokens: float | None
    strategy: dict[str, Any] | None
    reason: str | None = Field(description="why there is no plan")
    where: str | None
    hint: str | None
    binding: str | None = Field(description="infeasible: the constraint that rules out every plan")
    relaxations: tuple[str, ...] = Field(description="infeasible: what would let a plan fit")
    source: Literal["stored", "searched"] | None = Field(description="stored: it was known before the sweep")
    worker: str | None
    wall_s: float | None = Field(description="how long the job ran")


class SweepView(SweepSummary):
    """A sweep with its cells, in the order of the axes: models, clusters, device counts, lengths, batches."""

    cells: tuple[SweepCellView, ...]


class RemovedSweep(Document):
    """A sweep that is gone; its plans stay."""

    sweep_id: str
    cells: int


class SweepPage(Document):
    """A page of sweeps, newest first."""

    sweeps: tuple[SweepSummary, ...]
    next: str | None = Field(default=None, description="give it as `after` for the next page; null = the last page")
