"""Requests about long searches: list, look, watch, wait, cancel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import TypeVar, cast

import httpx

from api.client.errors import JobCancelled, JobUnfinished, ProblemReported, ServiceError
from api.client.events import watch
from api.client.question_body import new_key, path_part
from api.client.stored_plans import StoredPlans, read_as, read_plan
from api.client.transport import read_answer
from api.wire.jobs import ENDED, JobEvent, JobProgress, JobRecord, JobStatus
from api.wire.views import JobPage
from planner.operations.operation import Operation
from planner.operations.plan import Planned
from planner.plan.plan import Plan
from profiles.document import Document

Q = TypeVar("Q", bound=Document)
A = TypeVar("A")
Progress = Callable[[JobProgress], None]
"""Hears how far a search is.  May raise to stop waiting; the job goes on."""
Started = Callable[[str], None]
"""Hears the id of the job that a search became: with it the job is found again, whatever happens to the caller."""
MOST_ROWS = 500
FIRST_POLL_S, LONGEST_POLL_S = 0.1, 2.0


class Jobs(StoredPlans):
    """The part of a client that reads ``/v1/jobs``, and waits for what becomes a job."""

    def call(
        self,
        operation: Operation[Q, A],
        asked: Q,
        *,
        started: Started | None = None,
        progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> A:
        """See ``Client.call``."""
        if operation.read_first:
            try:
                return read_as(operation, self._sent(operation, "GET", asked).content)
            except ProblemReported as error:
                if not is_unplanned(error):
                    raise
        more = {"headers": {"Idempotency-Key": new_key()}} if operation.keyed else {}
        response = self._sent(operation, operation.method, asked, **more)
        if response.status_code == HTTPStatus.ACCEPTED:
            job = self._ended(response, started, progress, wait_s)
            if operation.answer is Planned:
                return cast("A", Planned(self._plan_of(job)))
            response = self._after(operation, asked, job)
        if response.status_code == HTTPStatus.ACCEPTED:
            raise ServiceError(
                "the plan in that back-end is not proved, and is searched again",
                hint="wait for its job, or emit the plan that it has by that plan's own id",
            )
        return read_as(operation, response.content)

    def _awaited(
        self, answer: httpx.Response, started: Started | None, progress: Progress | None, wait_s: float | None
    ) -> Plan:
        """The plan of an answer, or of the job that it names."""
        if answer.status_code != HTTPStatus.ACCEPTED:
            return read_plan(answer.content)
        return self._plan_of(self._ended(answer, started, progress, wait_s))

    def _ended(
        self, answer: httpx.Response, started: Started | None, progress: Progress | None, wait_s: float | None
    ) -> JobRecord:
        """The job that an answer names, once it has ended."""
        job = read_answer(JobRecord, answer.content)
        if started is not None:
            started(job.id)
        return self.wait_for_end(job.id, progress=progress, wait_s=wait_s)

    def _after(self, operation: Operation[Q, A], asked: Q, job: JobRecord) -> httpx.Response:
        """The answer that stands now that a job has ended: the fleet that it shared, or the same request again."""
        if job.result_fleet_id is not None:
            return self._transport.send("GET", f"/v1/fleets/{job.result_fleet_id}")
        _require_result(job)
        return self._sent(operation, operation.method, asked)

    def list_jobs(self, *, status: JobStatus | None = None, mine: bool = False, page: int = 50) -> Iterator[JobRecord]:
        """Every job, newest first; ``mine``: of this key only."""
        params: dict[str, str | int] = {"limit": min(page, MOST_ROWS), "mine": "true" if mine else "false"}
        if status is not None:
            params["status"] = status
        while True:
            found = self._transport.ask(JobPage, "GET", "/v1/jobs", params=params)
            yield from found.jobs
            if found.next is None:
                return
            params["before"] = found.next

    def get_job(self, job_id: str) -> JobRecord:
        """The job as it stands."""
        return self._transport.ask(JobRecord, "GET", f"/v1/jobs/{path_part(job_id, 'job')}")

    def cancel_job(self, job_id: str) -> JobRecord:
        """End a job; its best plan so far is kept.  Harmless for one that has ended."""
        return self._transport.ask(JobRecord, "POST", f"/v1/jobs/{path_part(job_id, 'job')}:cancel")

    def job_events(self, job_id: str, after: int = 0) -> Iterator[JobEvent]:
        """What happens to the job until it ends, after event number ``after``; resumed where a connection breaks."""
        return watch(self._transport, path_part(job_id, "job"), after)

    def wait_for_job(self, job_id: str, *, progress: Progress | None = None, wait_s: float | None = None) -> Plan:
        """The plan of a job, once it has ended; a cancelled job's best so far.

        Raises ProblemReported (no plan fits, or why it failed), JobCancelled, JobUnfinished after ``wait_s``.
        """
        return self._plan_of(self.wait_for_end(job_id, progress=progress, wait_s=wait_s))

    def wait_for_end(self, job_id: str, *, progress: Progress | None = None, wait_s: float | None = None) -> JobRecord:
        """The job, once it has ended, however it did.  Raises JobUnfinished after ``wait_s``."""
        end_s = None if wait_s is None else time.monotonic() + wait_s
        pause_s, shown = FIRST_POLL_S, None
        while (job := self.get_job(job_id)).status not in ENDED:
            if progress is not None and job.progress != shown:
                progress(job.progress)
                shown = job.progress
            if end_s is not None and time.monotonic() >= end_s:
                raise JobUnfinished(job_id, wait_s or 0.0)
            self._transport.patience.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_POLL_S)
        return job

    def _plan_of(self, job: JobRecord) -> Plan:
        """The plan of a job that has ended."""
        return self.get_plan(_require_result(job))


def _require_result(job: JobRecord) -> str:
    """The id of the plan of a job that has ended.  Raises ProblemReported, JobCancelled, ServiceError."""
    if job.result_plan_id is not None:
        return job.result_plan_id
    if job.error is not None:
        raise ProblemReported(job.error)
    if job.status == "cancelled":
        raise JobCancelled(job.id)
    raise ServiceError(f"job {job.id} is {job.status} without a result", where=job.id, hint="ask again")


def is_unplanned(error: ProblemReported) -> bool:
    """Whether there is no plan of the question in that back-end yet."""
    return error.status == HTTPStatus.NOT_FOUND and error.where == "backend"
