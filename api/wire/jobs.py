"""Wire documents about jobs: a record, its events, the progress of its search, and how many jobs wait."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from api.wire.problem_details import ProblemDetails
from planner.question.problem import Problem
from profiles.document import Document

JobKind = Literal["plan"]
JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]
ResultKind = Literal["plan", "infeasible", "none"]

ENDED: frozenset[JobStatus] = frozenset({"succeeded", "failed", "cancelled"})
"""Statuses that never change again."""


class JobProgress(Document):
    """How far a search is."""

    phase: str = Field(description="queued, starting, searching, recommending, alternatives, checking, storing")
    bounded: int = Field(default=0, ge=0, description="strategies with a lower bound")
    evaluated: int = Field(default=0, ge=0, description="strategies solved exactly")
    incumbent_s: float | None = Field(default=None, description="step time of the best plan so far")
    bound_s: float | None = Field(default=None, description="no plan is faster than this")
    gap: float | None = Field(default=None, ge=0, description="1 - bound over incumbent, at least 0")


class JobEvent(Document):
    """One thing that happened to a job.  ``seq`` starts at 1 and has no holes."""

    seq: int = Field(ge=1)
    at: datetime
    status: JobStatus
    progress: JobProgress


class JobSubject(Document):
    """What a job is about, as a person names it.  It stands in the job's row, so that a list loads no problem."""

    model: str
    cluster: str
    num_devices: int = Field(ge=1)
    global_batch_size: int = Field(ge=1, description="samples a step")
    sequence_length: int = Field(ge=1, description="tokens a sample")

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The names and sizes of a problem."""
        return cls(
            model=problem.model.name,
            cluster=problem.cluster.name,
            num_devices=problem.cluster.num_devices,
            global_batch_size=problem.workload.global_batch_size,
            sequence_length=problem.workload.sequence_length,
        )


class JobRecord(Document):
    """A job as it stands."""

    id: str
    kind: JobKind = "plan"
    owner: str
    problem_id: str
    subject: JobSubject | None = Field(
        default=None, description="what it is about; null = asked of a version that did not write it down"
    )
    status: JobStatus
    created_at: datetime
    started_at: datetime | None = Field(default=None, description="of the latest attempt")
    finished_at: datetime | None = None
    attempts: int = Field(default=0, ge=0)
    progress: JobProgress
    cancel_requested: bool = False
    num_waiting: int = Field(default=1, ge=0, description="callers who wait for it; the last who cancels ends it")
    result_kind: ResultKind = "none"
    result_plan_id: str | None = None
    error: ProblemDetails | None = Field(default=None, description="why it failed, or why no plan fits")


class QueueCounts(Document):
    """How loaded the board is."""

    queued: int = Field(ge=0)
    running: int = Field(ge=0)
    oldest_queued_s: float = Field(default=0.0, ge=0, description="how long the oldest queued job waits; 0 = none")
    refused_of_worker: dict[str, int] = Field(
        default_factory=dict,
        description="workers that live, and how many writes of each to a job it had lost were refused",
    )
