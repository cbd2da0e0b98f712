"""What does the service ask of whatever runs long searches?  The ``JobBoard``: submit, look, watch, cancel.

A job is on disk when ``submit`` returns.  It goes ``queued -> running -> succeeded | failed | cancelled`` (a lost
worker puts it back to ``queued``) and yields at most one result.  "No plan fits" is an answer: ``succeeded`` with the
result kind ``infeasible``.  A cancelled job keeps the best plan found so far, if any.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, Self

from pydantic import Field

from api.wire.problem_details import ProblemDetails
from planner.problem import Problem
from planner.search.options import SearchOptions
from profiles.document import Document

JobKind = Literal["plan"]
JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]
ResultKind = Literal["plan", "infeasible", "none"]

ENDED: frozenset[JobStatus] = frozenset({"succeeded", "failed", "cancelled"})
"""Statuses that never change again."""


class PlanRequest(Document):
    """A complete planning request: the problem with every name resolved, and how long to search.

    ``content_hash()`` is what makes two requests the same; ``priority`` is no part of it.
    """

    schema_version: Literal[1] = 1
    problem: Problem
    top_k: int = Field(default=3, ge=0, le=100, description="runners-up to report")
    time_limit_s: float | None = Field(default=None, gt=0, description="end of the search; None = until proved")
    seed: int = Field(default=0, ge=0, lt=2**31)
    priority: int = Field(default=0, ge=-100, le=100, description="higher is earlier", exclude=True)

    def search_options(self) -> SearchOptions:
        """What ``planner.search.find.find_plan`` takes."""
        return SearchOptions(top_k=self.top_k, time_limit_s=self.time_limit_s, seed=self.seed)


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


class JobBoard(Protocol):
    """Durable jobs.  Every method may block on the database: call it off the event loop.

    Errors: NotFound for an unknown job, StoreUnavailable when the database is away.
    """

    def submit(self, request: PlanRequest, *, key: str | None, owner: str) -> JobRecord:
        """The job for ``request``, on disk on return.

        The same content while a job of it is queued, running or succeeded, or the same ``key`` of the same ``owner``,
        gives the same job.  Raises KeyReused when the key belongs to other content, QueueFull (with
        ``retry_after_s``) when the owner or the board has too many jobs waiting; nothing is stored then.
        """
        ...

    def get(self, job_id: str) -> JobRecord:
        """The job as it stands."""
        ...

    def get_many(self, job_ids: Sequence[str]) -> tuple[JobRecord, ...]:
        """Those of these jobs that are there, in any order."""
        ...

    def list_jobs(
        self, *, owner: str | None = None, status: JobStatus | None = None, before: str | None = None, limit: int = 50
    ) -> tuple[JobRecord, ...]:
        """Jobs, newest first; ``before`` is the id of the last job already seen."""
        ...

    def cancel(self, job_id: str) -> JobRecord:
        """Ask the job to end; harmless for one that has ended.  It keeps its best plan so far."""
        ...

    def cancel_many(self, job_ids: Sequence[str]) -> tuple[JobRecord, ...]:
        """The same for many, as they then stand, in any order; unknown ones are passed over."""
        ...

    def events(self, job_id: str, after: int = 0) -> tuple[JobEvent, ...]:
        """What happened after event ``after`` (0 = everything), in order, up to now."""
        ...

    def forget(self, before: datetime, most: int) -> int:
        """Remove at most so many jobs that ended before ``before``, and keys as old; returns how many jobs."""
        ...

    def counts(self) -> QueueCounts:
        """How many jobs wait and run."""
        ...
