"""Real worker processes for tests and benchmarks of jobs: started, killed, stopped, continued."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

from api.jobs.board import JobBoard
from api.wire.jobs import ENDED, JobRecord
from api.worker.settings import WorkerSettings
from planner.store.address import database_url, jobs_path, sqlite_path

REPOSITORY = Path(__file__).parents[1]
PATIENCE_S = 300.0
"""For what a busy machine may take; a wait ends as soon as the thing is there."""


def quick_settings(database_url: str, **changes: object) -> WorkerSettings:
    """A worker with a short lease, so that its death is found in seconds."""
    values = {"lease_s": 2.0, "heartbeat_s": 0.4, "grace_s": 2.0, "drain_s": 5.0, "memory_limit_bytes": 2**30}
    return WorkerSettings(database_url=database_url, **{**values, **changes})  # type: ignore[arg-type]


class WorkerProcess:
    """One worker in a process of its own; its children are in sessions of their own."""

    def __init__(self, settings: WorkerSettings, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "api.worker"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(environment or {})},
        )
        path = sqlite_path(database_url(settings.database_url))
        self._sqlite_files = [] if path is None else [path, jobs_path(path)]
        assert self.process.stdin is not None
        self.process.stdin.write(settings.line())
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def kill(self) -> None:
        """kill -9, as a crash of the machine would look like."""
        self.process.kill()
        self._reap()

    def stop(self) -> None:
        """SIGSTOP: it is there, and does nothing.

        Never within a transaction on SQLite: whoever stops there keeps the lock of the file, and nobody else can write
        until it goes on.  That is SQLite's own limit (https://www.sqlite.org/lockingv3.html), not what is tested.
        """
        end = time.monotonic() + PATIENCE_S
        while True:
            self.process.send_signal(signal.SIGSTOP)
            if not any(_is_locked(path) for path in self._sqlite_files):
                return
            self.go_on()
            if time.monotonic() > end:
                raise AssertionError("the worker never left its transactions")
            time.sleep(0.01)

    def go_on(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def drain(self) -> None:
        """SIGTERM."""
        self.process.terminate()

    def end(self) -> int:
        """End it whatever its state; returns its exit code."""
        if self.process.poll() is None:
            self.process.kill()
        return self._reap()

    def _reap(self) -> int:
        if self.process.stdin is not None:
            self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


def _is_locked(path: Path) -> bool:
    """Whether another process holds the write lock of an SQLite file for longer than a living writer would."""
    with closing(sqlite3.connect(path, timeout=0.5, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
    return False


def wait_for(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Poll until ``condition``; fails the test after ``timeout_s``."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.05)


def ended(board: JobBoard, jobs: Sequence[str], timeout_s: float) -> list[JobRecord]:
    """The records of jobs once all have ended."""
    try:
        wait_for(lambda: all(board.get(job).status in ENDED for job in jobs), timeout_s, "every job has ended")
    except AssertionError as error:
        raise AssertionError(f"{error}; they are {[board.get(job) for job in jobs]}") from None
    return [board.get(job) for job in jobs]
