"""The thread of every service that moves sweeps on; of several on one PostgreSQL database one at a time.

Each open cell is answered by what is stored, else by a job of the board, where any worker runs it.  The thread only
submits and reads: jobs are found again by their content, so a service that dies between two steps loses nothing, and
the next one goes on from the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from api.errors import QueueFull
from api.jobs.board import JobBoard, PlanRequest
from api.sweeps.cell_lines import after_job, answered, given_up, unanswered
from api.sweeps.resolved import ResolvedSweep
from api.wire.jobs import ENDED, JobRecord
from planner.answers.sweep.answer import missing, planned
from planner.answers.sweep.grid import Cell
from planner.answers.sweep.walk import stored_plan
from planner.store.records import SweepCell, SweepRecord
from planner.store.repository import Store
from planner.store.sweeps import WAITING
from profiles.errors import MeshwrightError
from profiles.validation import FindingsInvalid, read_document

CELL_PRIORITY = -10
"""Of a cell's job: questions that somebody asks one by one come first."""
IDLE_S = 5.0
LEAST_PAUSE_S = 0.5
REST = 4.0
"""Pause after a round, in times of what the round took: however many cells there are, most of a core stays free."""
PORTION = 100
"""Cells that are kept in one transaction."""
END_WAIT_S = 10.0

log = logging.getLogger("meshwright.sweeps")
Known = tuple[ResolvedSweep, tuple[Cell, ...]]


class SweepDriver:
    """Moves the sweeps of a database on until each has ended."""

    def __init__(self, store: Store, board: JobBoard) -> None:
        self._store, self._sweeps, self._board = store, store.sweeps(), board
        self._known: dict[str, Known] = {}
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeps", daemon=True)

    def start(self) -> None:
        """Begin: sweeps that an earlier service left go on at once."""
        self._thread.start()

    def wake(self) -> None:
        """Look now: a sweep came, or is to end."""
        self._wake.set()

    def stop(self) -> None:
        """End after the step that is being made."""
        self._end.set()
        self._wake.set()
        self._thread.join(END_WAIT_S)

    def move_on(self) -> int:
        """One step of every open sweep; how many are still open.  Raises StoreError."""
        with self._sweeps.alone() as alone:
            if not alone:
                return 0
            sweeps = self._sweeps.open_sweeps()
            for sweep in sweeps:
                if not self._end.is_set():
                    self._step(sweep)
            self._known = {each.sweep_id: self._known[each.sweep_id] for each in sweeps if each.sweep_id in self._known}
        return len(sweeps)

    def _run(self) -> None:
        while not self._end.is_set():
            self._wake.clear()
            start_s, still_open = time.monotonic(), 0
            try:
                still_open = self.move_on()
            except MeshwrightError as error:
                log.warning("sweeps cannot go on now: %s", error.what)
            except Exception:  # a thread that dies here would leave every sweep as it is
                log.exception("sweeps cannot go on")
            took_s = time.monotonic() - start_s
            self._wake.wait(max(LEAST_PAUSE_S, REST * took_s) if still_open else IDLE_S)

    def _step(self, sweep: SweepRecord) -> None:
        cells = self._sweeps.cells(sweep.sweep_id, open_only=True)
        try:
            resolved, grid = self._resolved(sweep)
        except FindingsInvalid as error:
            why = f"another release stored this sweep, and this one cannot read it: {error.what.splitlines()[0]}"
            self._sweeps.change(sweep.sweep_id, [given_up(cell, why) for cell in cells])
            return
        asked = [cell.job_id for cell in cells if cell.job_id is not None]
        jobs = {job.id: job for job in self._board.get_many(asked)}
        if sweep.cancelled_at is None:
            self._advance(sweep, resolved, grid, cells, jobs)
        else:
            self._cancel(sweep, resolved, grid, cells, jobs)

    def _advance(
        self,
        sweep: SweepRecord,
        resolved: ResolvedSweep,
        grid: Sequence[Cell],
        cells: Sequence[SweepCell],
        jobs: Mapping[str, JobRecord],
    ) -> None:
        """Every open cell one step further, as far as the queue has room."""
        changed: list[SweepCell] = []
        try:
            for cell in cells:
                after = self._advanced(sweep, resolved, grid[cell.position], cell, jobs)
                if after != cell:
                    changed.append(after)
                if len(changed) == PORTION:
                    self._sweeps.change(sweep.sweep_id, changed)
                    changed = []
                # Somebody wants something, perhaps the end of this sweep: look again before more is submitted.
                if self._end.is_set() or self._wake.is_set():
                    break
        except QueueFull:
            log.info("the queue is full; sweep %s goes on later", sweep.sweep_id[:12])
        self._sweeps.change(sweep.sweep_id, changed)

    def _advanced(
        self, sweep: SweepRecord, resolved: ResolvedSweep, cell: Cell, kept: SweepCell, jobs: Mapping[str, JobRecord]
    ) -> SweepCell:
        """A cell one step further: answered, submitted, or as its job stands.  Raises QueueFull."""
        if kept.job_id is not None:
            job = jobs.get(kept.job_id)
            return unanswered(cell, WAITING) if job is None else self._after(cell, job, resolved)
        problem = cell.problem
        if problem is None:
            return given_up(kept, "the cell is no question")
        plan = stored_plan(self._store, problem.problem_id, resolved.options)
        if plan is not None:
            return answered(planned(cell, plan, source="stored"), resolved)
        request = PlanRequest(
            problem=problem,
            top_k=resolved.top_k,
            time_limit_s=resolved.time_limit_s,
            seed=resolved.seed,
            priority=CELL_PRIORITY,
        )
        return self._after(cell, self._board.submit(request, key=None, owner=sweep.owner), resolved)

    def _cancel(
        self,
        sweep: SweepRecord,
        resolved: ResolvedSweep,
        grid: Sequence[Cell],
        cells: Sequence[SweepCell],
        jobs: Mapping[str, JobRecord],
    ) -> None:
        """End the jobs that nobody else waits for, and the cells without an answer."""
        others = self._sweeps.jobs_of_others(sweep.sweep_id)
        ours = {
            job.id: job
            for job in jobs.values()
            if job.status in ENDED or (job.id not in others and job.created_at >= sweep.created_at)
        }
        wanted = [job.id for job in ours.values() if job.status not in ENDED and not job.cancel_requested]
        ours |= {job.id: job for job in self._board.cancel_many(wanted, sweep.owner)}
        changed = []
        for cell in cells:
            job, place = ours.get(cell.job_id or ""), grid[cell.position]
            changed.append(answered(missing(place), resolved) if job is None else self._after(place, job, resolved))
        self._sweeps.change(sweep.sweep_id, changed)

    def _after(self, cell: Cell, job: JobRecord, resolved: ResolvedSweep) -> SweepCell:
        plan = None
        if job.status in ENDED and job.result_plan_id is not None:
            plan = self._store.get_plan(job.result_plan_id)
        return after_job(cell, job, plan, resolved)

    def _resolved(self, sweep: SweepRecord) -> Known:
        """The sweep's content and cells, made once.  Raises FindingsInvalid."""
        if sweep.sweep_id not in self._known:
            data = self._sweeps.document(sweep.sweep_id)
            resolved = read_document(ResolvedSweep, data, sweep.sweep_id)
            self._known[sweep.sweep_id] = resolved, resolved.cells()
        return self._known[sweep.sweep_id]
