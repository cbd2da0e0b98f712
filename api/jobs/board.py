"""The ``JobBoard``: what the service asks of whatever runs long searches (submit, look, watch, cancel).

A job is on disk when ``submit`` returns.  It goes ``queued -> running -> succeeded | failed | cancelled`` (a lost
worker puts it back to ``queued``) and yields at most one result.  "No plan fits" is an answer: ``succeeded`` with the
result kind ``infeasible``.  A cancelled job keeps the best plan found so far, if any.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from pydantic import Field

from api.wire.jobs import JobEvent, JobRecord, JobStatus, QueueCounts
from planner.question.problem import Problem
from planner.search.options import SearchOptions
from profiles.document import Document


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

    def is_waiting(self, job_id: str, owner: str) -> bool:
        """Whether ``owner`` asked for the job, first or later, and has not cancelled."""
        ...

    def cancel(self, job_id: str, owner: str | None = None) -> JobRecord:
        """``owner`` waits no longer for the job; when nobody does it is asked to end.  None: it ends for everybody.

        Harmless for a job that has ended.  It keeps its best plan so far.
        """
        ...

    def cancel_many(self, job_ids: Sequence[str], owner: str | None = None) -> tuple[JobRecord, ...]:
        """The same for many, as they then stand, in any order; unknown ones are passed over."""
        ...

    def events(self, job_id: str, after: int = 0) -> tuple[JobEvent, ...]:
        """What happened after event ``after`` (0 = everything), in order, up to now."""
        ...

    def forget(self, before: datetime, most: int) -> int:
        """Remove at most so many jobs that ended before ``before``, and keys as old; returns how many jobs."""
        ...

    def forget_problem(self, problem_id: str) -> int:
        """Remove the ended jobs of a question whose plan is gone, unless one is under way; how many."""
        ...

    def counts(self) -> QueueCounts:
        """How many jobs wait and run."""
        ...
