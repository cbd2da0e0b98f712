"""The executor for all cores of a machine: a few processes, each with one task at a time.

A process that dies (out of memory, a crash inside a solver) takes only its task with it: the task goes to a fresh
process, and is given up after ``MOST_TRIES``.  Processes are spawned, so they inherit no connection and no lock.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Generator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from planner.answers.sweep.task import MOST_TRIES, Outcome, Task

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess


class Processes:
    """At most ``size`` processes of this machine."""

    def __init__(self, size: int) -> None:
        self._size = size

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """The outcomes as they finish."""
        waiting, tries = deque(tasks), Counter[str]()
        crew = [_Worker() for _ in range(min(self._size, len(tasks)))]
        try:
            while waiting or any(worker.task for worker in crew):
                for worker in crew:
                    if worker.task is None and waiting:
                        task = waiting.popleft()
                        tries[task.key] += 1
                        worker.give(task)
                ready = wait([worker.pipe for worker in crew if worker.task])
                for worker in [each for each in crew if each.pipe in ready]:
                    task, outcome = worker.take()
                    if outcome is not None:
                        yield outcome
                    elif tries[task.key] < MOST_TRIES:
                        waiting.appendleft(task)
                    else:
                        yield given_up(task, f"its process died {MOST_TRIES} times")
        finally:
            for worker in crew:
                worker.end()


def given_up(task: Task, why: str) -> Outcome:
    """The outcome of a task that nobody could finish."""
    return Outcome(
        task.key, "failed", what=why, hint="it may need more memory than there is: run fewer workers at a time"
    )


class _Worker:
    """One process, the pipe to it, and what it computes now."""

    pipe: Connection
    _process: SpawnProcess

    def __init__(self) -> None:
        self.task: Task | None = None
        self._start()

    def give(self, task: Task) -> None:
        """Send a task; that the process died in idleness is noticed when the answer is taken."""
        self.task = task
        with contextlib.suppress(OSError):
            self.pipe.send(task)

    def take(self) -> tuple[Task, Outcome | None]:
        """The task and its outcome; None when the process died, which is then replaced."""
        task, self.task = self.task, None
        if task is None:
            raise RuntimeError("an idle process was asked for its answer")
        try:
            outcome: Outcome = self.pipe.recv()
        except (EOFError, OSError):
            self._restart()
            return task, None
        return task, outcome

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        # A process inherits what is blocked: Ctrl-C at a terminal reaches all of us, and is the driver's to handle.
        # The tracker that the first process starts would unblock it again.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def _restart(self) -> None:
        self.end()
        self._start()


def _serve(pipe: Connection) -> None:
    """Answer tasks until the driver is gone."""
    # Before NumPy is loaded, which reads it once: the processes share the cores already.
    os.environ["OMP_NUM_THREADS"] = "1"
    from planner.answers.sweep.solving import solve

    while True:
        try:
            task = pipe.recv()
            pipe.send(solve(task, f"process {os.getpid()}"))
        except (EOFError, OSError):
            return
