"""``open_board``: the board of ``serve``, with a worker of its own in a child process.

A child, not threads: a worker that dies or leaks takes no request with it, and DBOS's polling does not share the
API's interpreter lock.  It is started again when it dies, and ends when its parent does.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from api.jobs.board import JobBoard
from api.jobs.dbos_board import DEFAULT_LIMITS, DbosBoard
from api.jobs.queue_gate import QueueLimits
from api.telemetry.logs import LogFormat
from api.telemetry.tracing import TracingSettings
from api.worker.settings import WorkerSettings
from planner.store.address import database_url as canonical_url

RESTART_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses before the worker is started again; the first after one that lived long."""
LIVED_LONG_S = 60.0
END_WAIT_S = 10.0

log = logging.getLogger("meshwright.worker")


@contextmanager
def open_board(
    database_url: str | None,
    *,
    concurrency: int,
    limits: QueueLimits = DEFAULT_LIMITS,
    log_format: LogFormat = "text",
    tracing: TracingSettings | None = None,
) -> Iterator[JobBoard]:
    """The board of a plan store, with a worker of that many solves at once beside it; 0 = the board alone."""
    with DbosBoard.open(database_url, limits) as board:
        if concurrency == 0:
            yield board
            return
        settings = WorkerSettings(
            database_url=database_url,
            concurrency=concurrency,
            log_format=log_format,
            tracing=None if tracing is None else tracing.model_dump(mode="json"),
        )
        worker = start_embedded_worker(settings)
        try:
            yield board
        finally:
            worker.stop()


def start_embedded_worker(settings: WorkerSettings) -> EmbeddedWorker:
    """Start a worker process and keep one running."""
    worker = EmbeddedWorker(settings)
    worker.start()
    return worker


class EmbeddedWorker:
    """A worker process that is started again when it dies."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._end = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._keep_running, name="embedded-worker", daemon=True)

    def start(self) -> None:
        """Start the process and its guard."""
        self._process = self._spawn()
        self._thread.start()

    @property
    def process_id(self) -> int | None:
        """The running process; None between two of them."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def stop(self) -> None:
        """Let it drain, then end it."""
        self._end.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(self._settings.drain_s + END_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_WAIT_S)
            _close_stdin(process)
        self._thread.join(END_WAIT_S)

    def _keep_running(self) -> None:
        failures = 0
        while not self._end.is_set():
            process = self._process
            if process is None:
                return
            try:
                process.wait(LIVED_LONG_S)
            except subprocess.TimeoutExpired:
                failures = 0
                continue
            if self._end.is_set():
                return
            pause_s = RESTART_S[min(failures, len(RESTART_S) - 1)]
            failures += 1
            _close_stdin(process)
            log.warning("the embedded worker ended with code %s; it starts again", process.returncode)
            if self._end.wait(pause_s):
                return
            with self._lock:
                if not self._end.is_set():
                    self._process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = replace(self._settings, database_url=canonical_url(self._settings.database_url))
        # -P: a folder named api where the service was started is none of ours.
        # A session of its own: Ctrl-C is for the server, which then lets the worker drain.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "api.worker"], stdin=subprocess.PIPE, start_new_session=True
        )
        # Through the pipe: the address may hold a password, and everybody can read a command line.
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.write(settings.line())
                process.stdin.flush()
        return process


def _close_stdin(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
