"""The executors of cells: this process, processes of this machine, or Ray; the plans are the same."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Protocol

from planner.answers.sweep.task import Outcome, Task
from planner.errors import DocumentInvalid

SERIAL, PROCESSES, RAY, RAY_CLIENT = "serial", "processes", "ray", "ray://"
CHOICES = f"{SERIAL}|{PROCESSES}|{RAY}|{RAY_CLIENT}HOST:PORT"
MOST_WORKERS = 1024


class Executor(Protocol):
    """Runs tasks that know nothing of each other."""

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """One outcome for each task, as they finish, in any order.

        Closing the generator (or an exception inside it) ends every worker.  Raises ExecutorUnavailable when there is
        nobody to run tasks, Conflict when those who are there run other software.
        """


def executor(name: str, workers: int | None = None, code: Path | None = None) -> Executor:
    """The executor that ``name`` asks for.

    ``workers``: processes of this machine, by default one a core; a cluster has its own number.  ``code``: a folder
    whose planner, profiles and solver are sent to Ray's workers.  Raises DocumentInvalid.
    """
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise DocumentInvalid(
            f"{workers} workers cannot be started", where="--workers", hint=f"give a number from 1 to {MOST_WORKERS}"
        )
    is_ray = name == RAY or name.startswith(RAY_CLIENT)
    if code is not None and not is_ray:
        raise DocumentInvalid("only Ray's workers are sent code", where="--ray-code", hint="drop it, or --executor ray")
    if name == SERIAL:
        from planner.answers.sweep.serial import Serial

        return Serial()
    if name == PROCESSES:
        from planner.answers.sweep.processes import Processes

        return Processes(workers or usable_cores())
    if is_ray:
        from planner.answers.sweep.ray_tasks import RayTasks

        return RayTasks(name if name != RAY else None, workers or usable_cores(), code)
    raise DocumentInvalid(f"nobody is called {name!r} here", where="--executor", hint=f"choose among {CHOICES}")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
