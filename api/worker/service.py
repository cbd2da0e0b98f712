"""The worker: DBOS's executor for plan jobs, its heartbeat, its watch over the others, its warm children.

start   migrate, launch DBOS, appear, watch, warm up
drain   take no more jobs, let running ones finish for ``drain_s``, give the rest back, disappear
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer
from dbos import error as dbos_error

from api.errors import WorkerLost
from api.jobs.board import read_request
from api.jobs.outcome import MOST_ATTEMPTS, Outcome, failed
from api.jobs.program import active_jobs, register_program, write_event
from api.jobs.system_database import (
    APPLICATION,
    APPLICATION_VERSION,
    QUEUE,
    SCHEMA,
    make_client,
    make_system_engine,
    prepare_system_database,
    system_database_url,
)
from api.solving.pool import SolverPool
from api.telemetry.logs import CONTEXT, FIELDS
from api.telemetry.tracing import Tracing, TracingSettings
from api.worker.attempt import STORE_RETRY_S, Attempt, Lost
from api.worker.job_notes import JobNotes, Note
from api.worker.patient_engine import make_patient_engine
from api.worker.presence import Presence, executor_name
from api.worker.reaper import Reaper
from api.worker.settings import WorkerSettings, default_memory_limit_bytes
from planner.store.faults import translated
from planner.store.opening import open_store
from profiles.errors import MeshwrightError

BOOKKEEPING_CONNECTIONS = 3
SPARE_CONNECTIONS = 4
"""DBOS's own connections beside one for each solve."""
PARK_S = 3.0
SOLVES_OF_A_CHILD = 100

log = logging.getLogger("meshwright.worker")


class Worker:
    """One worker process.  DBOS allows one in a process."""

    def __init__(self, settings: WorkerSettings, tracing: Tracing | None = None) -> None:
        self._settings = settings
        wanted = None if settings.tracing is None else TracingSettings.model_validate(settings.tracing)
        self._tracing = tracing or Tracing.of(wanted)
        self._url = system_database_url(settings.database_url)
        prepare_system_database(self._url)
        self._store = open_store(settings.database_url)
        self._executor = executor_name()
        self._engine = make_system_engine(self._url, BOOKKEEPING_CONNECTIONS)
        self._client = make_client(self._engine)
        self._notes = JobNotes(self._client, self._executor)
        limit_bytes = settings.memory_limit_bytes or default_memory_limit_bytes(settings.concurrency)
        self._pool = SolverPool(
            settings.concurrency, limit_bytes, module=settings.solver_module, most_solves=SOLVES_OF_A_CHILD
        )
        beat_s = settings.heartbeat_s
        self._presence = Presence(self._client, self._executor, every_s=beat_s, lease_s=settings.lease_s)
        self._reaper = Reaper(self._client, self._executor, active_jobs, lease_s=settings.lease_s, every_s=beat_s)
        self._out_of_time = threading.Event()
        connections = settings.concurrency + SPARE_CONNECTIONS
        self._program_engine = make_patient_engine(self._url, connections, self._out_of_time)

    @property
    def name(self) -> str:
        """Its name in logs and job rows."""
        return self._executor

    def start(self) -> None:
        """Begin to take jobs.  Raises StoreError."""
        settings = self._settings
        with translated(self._url):
            DBOS(config=self._configuration())
            register_program(self._run_attempt)
            # Before the first job can be taken, so that nobody finds a job of a worker without a heartbeat.
            self._presence.start()
            self._client.register_queue(
                QUEUE,
                worker_concurrency=settings.concurrency,
                polling_interval_sec=settings.poll_s,
                on_conflict="always_update",
            )
            DBOS.listen_queues([QUEUE])
            DBOS.launch()
        self._reaper.start()
        self._pool.warm_up()
        log.info("worker %s takes jobs, %d at once", self._executor, settings.concurrency)

    def drain(self) -> None:
        """Take no more jobs; end when those that run have ended, or have been given back."""
        log.info("worker %s drains", self._executor)
        timer = threading.Timer(self._settings.drain_s, self._out_of_time.set)
        timer.daemon = True
        timer.start()
        # Waits for running jobs; those that are given back are no longer counted as running.
        DBOS.destroy(workflow_completion_timeout_sec=int(self._settings.drain_s + PARK_S) + 1)
        timer.cancel()
        # Whatever still waits for a database that is away waits no longer.
        self._out_of_time.set()
        self._reaper.stop()
        self._presence.stop()
        self._pool.close()
        self._client.destroy()
        self._engine.dispose()
        if self._program_engine is not None:
            self._program_engine.dispose()
        self._store.close()
        if self._tracing is not None:
            self._tracing.close()
        log.info("worker %s has ended", self._executor)

    def _configuration(self) -> DBOSConfig:
        return {
            "name": APPLICATION,
            "system_database_url": self._url,
            "system_database_engine": self._program_engine,
            "dbos_system_schema": SCHEMA,
            "sys_db_pool_size": self._settings.concurrency + SPARE_CONNECTIONS,
            "application_version": APPLICATION_VERSION,
            "executor_id": self._executor,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "use_listen_notify": False,
            "run_migrations": False,
        }

    def _run_attempt(self, job: str, request: str, crashes: int) -> Outcome:
        """One attempt, from inside the program's step."""
        note = self._note(job)
        if self._tracing is None:
            return self._logged(job, request, crashes, note, {"job_id": job})
        with self._tracing.attempt(job, note.traceparent) as traced:
            outcome = self._logged(job, request, crashes, note, {"job_id": job, "trace_id": traced.trace_id})
            traced.ended(outcome.status, outcome.attempt, outcome.result_kind)
            return outcome

    def _logged(self, job: str, request: str, crashes: int, note: Note, said: dict[str, str]) -> Outcome:
        """The attempt, with a line at its end; ``said`` is what every line of the log says meanwhile."""
        context, start_s = CONTEXT.set(said), time.perf_counter()
        try:
            outcome = self._attempted(job, request, crashes, note)
            fields = {
                "status": outcome.status,
                "attempt": outcome.attempt,
                "result_kind": outcome.result_kind,
                "plan_id": outcome.plan_id,
                "fleet_id": outcome.fleet_id,
                "duration_s": round(time.perf_counter() - start_s, 6),
            }
            log.info("the attempt at a job has ended", extra={FIELDS: fields})
            return outcome
        finally:
            CONTEXT.reset(context)

    def _attempted(self, job: str, request: str, crashes: int, note: Note) -> Outcome:
        # How often the program was handed to a worker, this time included.
        number = max(1, note.dispatched) + crashes
        if number > MOST_ATTEMPTS:
            spent = WorkerLost(f"{MOST_ATTEMPTS} attempts are spent: solvers and workers died", where=job)
            return failed(spent, MOST_ATTEMPTS)
        attempt = Attempt(
            job=job,
            number=number,
            request=read_request(request),
            settings=self._settings,
            pool=self._pool,
            notes=self._notes,
            store=self._store,
            write_event=self._write_event,
            draining=self._out_of_time.is_set,
        )
        try:
            return attempt.run()
        except MeshwrightError as error:
            return failed(error, number)

    def _write_event(self, value: dict[str, Any]) -> None:
        """Append to the events of the job that runs in this context.  Raises StoreError."""
        try:
            with translated(self._url):
                write_event(value)
        except dbos_error.DBOSWorkflowConflictIDError:
            log.warning("a write was refused, because the job runs elsewhere")
            self._presence.count_refusal()
            raise

    def _note(self, job: str) -> Note:
        """What stands beside the job's row, once the database is there."""
        while True:
            note = self._notes.read(job)
            if note is not None:
                return note
            if self._out_of_time.is_set():
                raise Lost(job)
            time.sleep(STORE_RETRY_S)
