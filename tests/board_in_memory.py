"""A ``JobBoard`` without a database: real searches in threads, for tests of the service that need no durability."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from api.errors import KeyReused, QueueFull
from api.jobs.board import PlanRequest
from api.wire.jobs import ENDED, JobEvent, JobProgress, JobRecord, JobStatus, JobSubject, QueueCounts
from api.wire.problem_details import problem_details
from planner.errors import MeshwrightError, NotFound
from planner.search.find import find_plan
from planner.search.options import SearchProgress
from planner.store import open_store


class _Cancelled(Exception):
    pass


class MemoryBoard:
    """Jobs of one process; ``paused`` keeps them in the queue."""

    def __init__(self, database: str, *, paused: bool = False, capacity: int = 100) -> None:
        self._database = database
        self._capacity = capacity
        self._paused = paused
        self._lock = threading.Lock()
        self._jobs: dict[str, JobRecord] = {}
        self._events: dict[str, list[JobEvent]] = {}
        self._requests: dict[str, PlanRequest] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._waiting: dict[str, set[str]] = {}
        self._threads = ThreadPoolExecutor(1)

    def submit(self, request: PlanRequest, *, key: str | None, owner: str) -> JobRecord:
        """See ``JobBoard``."""
        content = request.content_hash()
        with self._lock:
            known = self._keys.get((owner, key)) if key is not None else None
            if known is not None:
                if self._requests[known].content_hash() != content:
                    raise KeyReused("this key belongs to another request")
                return self._jobs[known]
            for job_id, other in self._requests.items():
                if other.content_hash() == content and self._jobs[job_id].status not in {"failed", "cancelled"}:
                    self._waiting[job_id].add(owner)
                    return self._jobs[job_id]
            if self._counts().queued >= self._capacity:
                raise QueueFull("too many jobs wait", retry_after_s=7)
            job_id = uuid.uuid4().hex
            self._requests[job_id] = request
            self._waiting[job_id] = {owner}
            if key is not None:
                self._keys[owner, key] = job_id
            self._jobs[job_id] = JobRecord(
                id=job_id,
                owner=owner,
                problem_id=request.problem.problem_id,
                subject=JobSubject.of(request.problem),
                status="queued",
                created_at=datetime.now(UTC),
                progress=JobProgress(phase="queued"),
            )
            self._events[job_id] = []
            self._tell(job_id)
        if not self._paused:
            self._threads.submit(self._run, job_id)
        return self._jobs[job_id]

    def get(self, job_id: str) -> JobRecord:
        """See ``JobBoard``."""
        with self._lock:
            if job_id not in self._jobs:
                raise NotFound("there is no such job", where=job_id)
            return self._jobs[job_id]

    def get_many(self, job_ids: Sequence[str]) -> tuple[JobRecord, ...]:
        """See ``JobBoard``."""
        with self._lock:
            return tuple(self._jobs[job_id] for job_id in job_ids if job_id in self._jobs)

    def list_jobs(
        self, *, owner: str | None = None, status: JobStatus | None = None, before: str | None = None, limit: int = 50
    ) -> tuple[JobRecord, ...]:
        """See ``JobBoard``."""
        with self._lock:
            newest = list(reversed(self._jobs.values()))
        ids = [job.id for job in newest]
        if before is not None and before not in ids:
            raise NotFound("there is no such job", where="before")
        start = 0 if before is None else ids.index(before) + 1
        kept = [
            job for job in newest[start:] if (not owner or job.owner == owner) and (not status or job.status == status)
        ]
        return tuple(kept[:limit])

    def is_waiting(self, job_id: str, owner: str) -> bool:
        """See ``JobBoard``."""
        self.get(job_id)
        return owner in self._waiting[job_id]

    def cancel(self, job_id: str, owner: str | None = None) -> JobRecord:
        """See ``JobBoard``."""
        job = self.get(job_id)
        with self._lock:
            self._waiting[job_id] -= self._waiting[job_id] if owner is None else {owner}
            if self._waiting[job_id]:
                return self._jobs[job_id]
            if job.status == "queued":
                self._change(job_id, status="cancelled", cancel_requested=True, finished_at=datetime.now(UTC))
            elif job.status not in ENDED:
                self._change(job_id, cancel_requested=True)
            return self._jobs[job_id]

    def cancel_many(self, job_ids: Sequence[str], owner: str | None = None) -> tuple[JobRecord, ...]:
        """See ``JobBoard``."""
        return tuple(self.cancel(job_id, owner) for job_id in job_ids)

    def events(self, job_id: str, after: int = 0) -> tuple[JobEvent, ...]:
        """See ``JobBoard``."""
        self.get(job_id)
        with self._lock:
            return tuple(self._events[job_id][after:])

    def forget(self, before: datetime, most: int) -> int:
        """See ``JobBoard``."""
        with self._lock:
            old = [
                each.id for each in self._jobs.values() if each.finished_at is not None and each.finished_at < before
            ]
            for job_id in old[:most]:
                del self._jobs[job_id], self._events[job_id], self._requests[job_id]
            return len(old[:most])

    def forget_problem(self, problem_id: str) -> int:
        """See ``JobBoard``."""
        with self._lock:
            jobs = [each for each in self._jobs.values() if each.problem_id == problem_id]
            if any(each.status not in ENDED for each in jobs):
                return 0
            for each in jobs:
                del self._jobs[each.id], self._events[each.id], self._requests[each.id]
            return len(jobs)

    def counts(self) -> QueueCounts:
        """See ``JobBoard``."""
        with self._lock:
            return self._counts()

    def _counts(self) -> QueueCounts:
        states = [job.status for job in self._jobs.values()]
        return QueueCounts(queued=states.count("queued"), running=states.count("running"))

    def _run(self, job_id: str) -> None:
        with self._lock:
            if self._jobs[job_id].status != "queued":
                return
            self._change(job_id, status="running", started_at=datetime.now(UTC), attempts=1)

        def watch(state: SearchProgress) -> None:
            with self._lock:
                if self._jobs[job_id].cancel_requested:
                    raise _Cancelled
                seen = JobProgress(phase="searching", bounded=state.bounded, evaluated=state.evaluated)
                self._change(job_id, progress=seen)

        request = self._requests[job_id]
        changes: dict[str, Any]
        try:
            plan = find_plan(request.problem, request.search_options(), watch)
            with open_store(self._database) as store:
                changes = {"result_plan_id": store.save_plan(plan, 0.1), "result_kind": "plan", "status": "succeeded"}
        except _Cancelled:
            changes = {"status": "cancelled"}
        except MeshwrightError as error:
            changes = {"status": "succeeded", "result_kind": "infeasible", "error": problem_details(error)}
        with self._lock:
            self._change(job_id, finished_at=datetime.now(UTC), **changes)

    def _change(self, job_id: str, **changes: Any) -> None:
        self._jobs[job_id] = self._jobs[job_id].model_copy(update=changes)
        self._tell(job_id)

    def _tell(self, job_id: str) -> None:
        job, events = self._jobs[job_id], self._events[job_id]
        events.append(JobEvent(seq=len(events) + 1, at=datetime.now(UTC), status=job.status, progress=job.progress))
