"""What is checked, as a table: each job with its command, and what must have ended before it starts."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests import sampling

PYTHON = ".venv/bin/python"

WAITING = (
    "tests/integration/test_sweep_ray.py",
    "tests/faults",
    *(f"tests/e2e/test_{name}.py" for name in ("serve", "serve_jobs", "serve_sweeps", "worker_command")),
    *(
        f"tests/integration/test_{name}.py"
        for name in (
            "accuracy_service",
            "audit_service",
            "client",
            "emission_service",
            "job_board",
            "launcher_runs",
            "launcher_validators",
            "measure_collectives",
            "oidc_service",
            "profile_service",
            "retention",
            "scheduler_kubernetes",
            "scheduler_ray",
            "scheduler_slurm",
            "service",
            "service_calibration",
            "service_findings",
            "service_hosts",
            "service_limits",
            "service_pictures",
            "service_schema",
            "service_store",
            "store_concurrency",
            "sweep_client",
            "sweep_processes",
            "sweep_service",
            "task_runner",
            "tracing",
            "uploads_service",
            "worker_secrets",
        )
    ),
)
"""Files and folders whose tests mostly wait for services, databases, clocks and ranks: they have workers of their own
beside those that compute.  What is not named here computes.  The longest stand first, so that none starts last."""

SCREENS = ("npm", "run", "--silent", "e2e", "--")

QUICK = (
    "tests/unit",
    "tests/contract/test_imports.py",
    "tests/contract/test_files.py",
    "tests/contract/test_error_tree.py",
)
"""What is tested before a commit, but for tests marked slow: every module by itself, and the shape of the house."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command that passes or fails."""

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    """Jobs that must have passed."""
    behind: tuple[str, ...] = ()
    """Jobs that must have ended, whether they passed or failed."""
    folder: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)
    yielding: bool = False
    """Whether it computes for long: it yields the cores to jobs that wait for something to happen by the clock."""


def tests(name: str, paths: tuple[str, ...], *options: str, workers: int, yielding: bool) -> Job:
    """Tests of these paths on so many workers.

    A file stays on one worker, or the launches that its tests share would run once a worker.
    """
    command = (PYTHON, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadfile")
    # Two runs at once may not share the folder of what failed last.
    kept = ("-o", f"cache_dir=.cache/pytest-{name.partition(' ')[0]}")
    return Job(name, (*command, *kept, *options, *paths), yielding=yielding)


STATIC = (
    Job("style", ("bash", "-c", ".venv/bin/ruff check . && .venv/bin/ruff format --check .")),
    Job("types", (PYTHON, "-m", "tests.checks.kept", "types", "--", ".venv/bin/mypy"), yielding=True),
    Job("layers", (".venv/bin/lint-imports", "--no-cache")),
    Job("web units", ("npm", "run", "--silent", "check"), folder="web"),
)


def screens_of_this_run() -> tuple[str, ...]:
    """Playwright's share: a quick run takes a third of the files of screens, which one is the seed's choice."""
    if sampling.runs_whole():
        return ()
    return (f"--shard={random.Random(f'screens {sampling.run_seed()}').randint(1, 3)}/3",)


def jobs_of(name: str, workers: int) -> tuple[Job, ...]:
    """The jobs of ``make check`` and ``make test``; ``workers`` is the number of processes that compute."""
    if name == "check":
        return (*STATIC, tests("quick tests", QUICK, "-m", "not slow", workers=workers, yielding=False))
    ignored = [f"--ignore={path}" for path in WAITING]
    return (
        tests("waiting tests", WAITING, "--no-loadscope-reorder", workers=workers, yielding=False),
        *STATIC,
        tests("computing tests", ("tests",), *ignored, workers=workers, yielding=True),
        # They compute as long as they run, and wait for answers by the clock: beside tests nothing would be won.
        Job(
            "screens",
            (*SCREENS, "--project=screens", *screens_of_this_run()),
            behind=("waiting tests", "computing tests"),
            folder="web",
        ),
        # What a clock measures has nothing beside it.
        Job("measured screens", (*SCREENS, "--project=alone", "--no-deps"), behind=("screens",), folder="web"),
    )


def workers_here() -> int:
    """``$WORKERS``, else a process a core."""
    return int(os.environ.get("WORKERS") or len(os.sched_getaffinity(0)))
