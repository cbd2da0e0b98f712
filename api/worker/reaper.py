"""The jobs that must run again: those of workers whose heartbeat has not moved for a lease.

DBOS runs a dead executor's workflows again when somebody tells it who is dead; it does not find out by itself.  Every
worker watches: each running job names its executor, each living executor moves its beat.  An executor whose beat stays
the same for its lease, on the watcher's own monotonic clock, is dead; so is one without any beat, after the watcher's
lease.  A moment without the database restarts the watch, because nobody could move then.

A worker also watches itself: a job that the database says is its own, but whose program does not run here for a lease,
was lost between the two, when an answer of the database did.  It goes back on the queue, its attempt uncounted.

Several watchers may agree at once: DBOS re-queues a job only while it still belongs to the executor that is named,
and hands it to one worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from dbos import DBOS, DBOSClient, error
from sqlalchemy.exc import SQLAlchemyError

from api.jobs.system_database import PROGRAM, QUEUE
from api.worker.presence import Beat, beats

log = logging.getLogger("meshwright.worker")


class Watch:
    """Who has not moved for how long?  Pure bookkeeping; the clock is handed in."""

    def __init__(self, lease_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease_s, self._clock = lease_s, clock
        self._since: dict[str, tuple[Beat | None, float]] = {}

    def dead(self, executors: set[str], moving: dict[str, Beat]) -> set[str]:
        """Of ``executors``, those whose beat has stayed the same for a lease."""
        now = self._clock()
        seen = {}
        for executor in executors | set(moving):
            beat = moving.get(executor)
            before = self._since.get(executor)
            seen[executor] = before if before is not None and before[0] == beat else (beat, now)
        self._since = seen
        return {executor for executor, (beat, since) in seen.items() if now - since >= self._lease_of(beat)}

    def _lease_of(self, beat: Beat | None) -> float:
        return self._lease_s if beat is None else beat.lease_s

    def forget(self) -> None:
        """Start anew: what was seen before says nothing about now."""
        self._since = {}


class Reaper:
    """A thread that hands the jobs of dead workers to the living."""

    def __init__(
        self,
        client: DBOSClient,
        executor: str,
        active_jobs: Callable[[], set[str]],
        *,
        lease_s: float,
        every_s: float,
    ) -> None:
        self._client, self._executor, self._every_s = client, executor, every_s
        self._active_jobs = active_jobs
        self._watch = Watch(lease_s)
        self._own = Watch(lease_s)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._end.set()
        self._thread.join(self._every_s + 5)

    def _run(self) -> None:
        while not self._end.wait(self._every_s):
            try:
                self.look()
            except (SQLAlchemyError, error.DBOSException) as failure:
                log.warning("dead workers cannot be looked for now: %s", type(failure).__name__)
                self._watch.forget()
                self._own.forget()

    def look(self) -> None:
        """One round."""
        running = self._client.list_workflows(name=PROGRAM, status="PENDING", load_input=False, load_output=False)
        self._look_at_own({row.workflow_id for row in running if row.executor_id == self._executor})
        executors = {row.executor_id for row in running if row.executor_id}
        moving = beats(self._client)
        for dead in self._watch.dead(executors, moving) - {self._executor}:
            log.warning("worker %s has disappeared; its jobs run again", dead)
            for row in running:
                # What was to be cancelled anyway need not wait for another worker.
                if row.executor_id == dead and (row.attributes or {}).get("cancel_requested"):
                    self._client.cancel_workflow(row.workflow_id)
            if dead in moving:
                self._client.delete_workflow(moving[dead].row)
            DBOS._recover_pending_workflows([dead])

    def _look_at_own(self, jobs: set[str]) -> None:
        # Read after the rows: a job that was begun in between is active, and one that ended is no longer its own.
        for lost in self._own.dead(jobs - self._active_jobs(), {}):
            log.warning("job %s was given to this worker, which does not run it; it runs again", lost)
            self._client.resume_workflow(lost, queue_name=QUEUE)
