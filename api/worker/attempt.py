"""One attempt at a job: watch a child solve, report its progress, check and store its answer.

The attempt runs inside a step of the durable program.  Everything that it writes to the job goes through the
program's stream, which refuses an execution that no longer owns the job: a worker that was stopped for longer than
its lease is thrown out of this function by ``write_event``, and writes no result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from api.errors import JobFailure, SolverCrashed, SolverOutOfMemory, refused_by_checker
from api.jobs.board import JobRequest
from api.jobs.outcome import Outcome, failed
from api.solving.messages import Message
from api.solving.patience import Patience
from api.solving.pool import SolverPool
from api.solving.process import SolverProcess, memory_limit_reached
from api.solving.results import Kept, checked, stored_result, task_of
from api.telemetry.tracing import span
from api.wire.jobs import JobProgress
from api.wire.problem_details import ProblemDetails
from api.worker.job_notes import JobNotes
from api.worker.settings import WorkerSettings
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.store.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from planner.store.repository import Store
from solver.check import CheckFailed

TICK_S = 0.5
"""Events of a job come at most so often."""
LOOK_S = 1.0
"""How often the job's row is read: was it cancelled, is it still ours?"""
SILENCE_S = 10.0
"""An event at least so often, because writing one is what finds out that the job belongs to somebody else."""
STORE_RETRY_S = 2.0

PASSING = (StoreUnavailable, StoreFull, StoreReadOnly)
"""What somebody will repair: a plan that is found is kept until then."""

T = TypeVar("T")
WriteEvent = Callable[[dict[str, Any]], None]


class Lost(BaseException):
    """The job was given back: end without an outcome.  No ``Exception``, because DBOS would record one as the end."""


@dataclass(slots=True)
class Attempt:
    """One attempt at one job."""

    job: str
    number: int
    request: JobRequest
    settings: WorkerSettings
    pool: SolverPool
    notes: JobNotes
    store: Store
    write_event: WriteEvent
    draining: Callable[[], bool]
    progress: JobProgress = field(default_factory=lambda: JobProgress(phase="starting"))
    cancelled: bool = False
    _published: JobProgress | None = None
    _event_s: float = float("-inf")
    _look_s: float = float("-inf")
    _patience: Patience | None = None
    _away: bool = False

    def run(self) -> Outcome:
        """How it ended.  Raises Lost."""
        stored = self._patiently(lambda: stored_result(self.request, self.store))
        if stored is not None:
            return self._succeeded(stored)
        self._look()
        if self.cancelled:
            return Outcome(status="cancelled", attempt=self.number)
        self._publish()
        child = self.pool.take()
        healthy = False
        task, payload = task_of(self.request)
        try:
            child.solve(task, payload)
            with span("solve", **{"meshwright.task": task}):
                outcome, healthy = self._watch(child)
            return outcome
        finally:
            self.pool.give_back(child, healthy=healthy)

    def _watch(self, child: SolverProcess) -> tuple[Outcome, bool]:
        start_s = time.monotonic()
        limit_s = min(self.request.time_limit_s or self.settings.longest_solve_s, self.settings.longest_solve_s)
        # The search ends itself at its own limit; what it does after that is assembling the plan.
        own = self.settings.grace_s if self.request.time_limit_s == limit_s else 0.0
        while True:
            message = child.next_message(TICK_S)
            if message is not None and message.kind == "progress":
                self.progress = JobProgress.model_validate_json(message.content)
            elif message is not None and message.kind != "ready":
                return self._ended(message, child)
            self._look()
            self._publish()
            if self._patience is None and (self.cancelled or time.monotonic() - start_s > limit_s + own):
                child.stop()
                self._patience = Patience(child.process.pid)
            if self._patience is not None and self._patience.look() > self.settings.grace_s:
                return self._hung(), False
            self._leave_when_draining()

    def _ended(self, message: Message, child: SolverProcess) -> tuple[Outcome, bool]:
        """What the child's last message means, and whether the child can be used again."""
        if message.kind == "done":
            return self._keep(message), True
        refused = ProblemDetails.model_validate_json(message.content) if message.kind == "refused" else None
        if refused is not None and refused.slug == NoFeasiblePlan.slug:
            status = "cancelled" if self.cancelled else "succeeded"
            kind = "none" if self.cancelled else "infeasible"
            return Outcome.model_validate(
                {"status": status, "attempt": self.number, "result_kind": kind, "error": refused}
            ), True
        if refused is not None and refused.slug != SolverOutOfMemory.slug:
            if self.cancelled:
                return Outcome(status="cancelled", attempt=self.number), True
            return Outcome(status="failed", attempt=self.number, error=refused), True
        if self.cancelled:
            return Outcome(status="cancelled", attempt=self.number), False
        return failed(_failure(message, child), self.number, again=True), False

    def _hung(self) -> Outcome:
        """It was told to end and did not."""
        if self.cancelled:
            return Outcome(status="cancelled", attempt=self.number)
        error = BudgetSpent(
            f"the search did not end within {self.settings.grace_s:g} s of its time limit",
            where="/time_limit_s",
            hint="pin degrees to make the space smaller, or ask for fewer devices",
        )
        return failed(error, self.number)

    def _keep(self, message: Message) -> Outcome:
        """Prove the answer and store it."""
        self.progress = self.progress.model_copy(update={"phase": "checking"})
        try:
            found = checked(self.request, message.content)
        except (CheckFailed, ValueError) as error:
            return failed(refused_by_checker(error), self.number)
        self.progress = found.progress
        # Before the plan is stored: whoever lost the job while it solved stores nothing.
        self._patiently(self._write)
        return self._succeeded(self._patiently(lambda: found.save(self.store, message.wall_s)))

    def _succeeded(self, kept: Kept) -> Outcome:
        """A cancelled job keeps its answer too."""
        return Outcome(
            status="cancelled" if self.cancelled else "succeeded",
            attempt=self.number,
            result_kind=kept.result_kind,
            plan_id=kept.plan_id,
            fleet_id=kept.fleet_id,
        )

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Wait for a database that is away, full or read-only: an answer is worth more than the wait."""
        while True:
            try:
                return ask()
            except PASSING:
                self._leave_when_draining()
                time.sleep(STORE_RETRY_S)

    def _leave_when_draining(self) -> None:
        if self.draining():
            self.notes.give_back(self.job)
            raise Lost(self.job)

    def _look(self) -> None:
        """Read the job's row now and then; a database that is away is no reason to stop."""
        if time.monotonic() - self._look_s < LOOK_S:
            return
        self._look_s = time.monotonic()
        note = self.notes.read(self.job)
        self._away = note is None
        if note is not None:
            self.cancelled = self.cancelled or note.cancel_requested
            if not note.ours:
                # Refused when it is true; otherwise only an event more.
                self._tell()

    def _publish(self) -> None:
        """Write progress where it changed, at most every ``TICK_S``, and a sign of life otherwise."""
        if self._away:
            # The program's engine would wait for the database, and nobody would hear what the solver says.
            return
        since_s = time.monotonic() - self._event_s
        changed = self.progress != self._published
        if (changed and since_s >= TICK_S) or since_s >= SILENCE_S:
            self._tell()

    def _tell(self) -> None:
        """Write progress; where that cannot be done now, the search goes on, and the next event says more."""
        with suppress(StoreError):
            self._write()

    def _write(self) -> None:
        """An event, and a note beside the job's row.  Raises StoreError."""
        self._event_s, self._published = time.monotonic(), self.progress
        data = self.progress.model_dump(mode="json")
        self.write_event({"at": datetime.now(UTC).isoformat(), "status": "running", "progress": data})
        self.notes.write(self.job, {"progress": data, "attempt": self.number})


def _failure(message: Message, child: SolverProcess) -> JobFailure:
    if message.kind == "refused":
        return memory_limit_reached()
    if message.kind == "bug":
        what = message.content.decode()[:500]
        return SolverCrashed(f"the solver failed: {what}", hint="this is a bug: please report it")
    return child.why_it_died()
