"""Runs a real ``meshwright`` process and measures its time and its memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class ChildRun:
    """One finished process."""

    exit_code: int
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float
    peak_bytes: int


def run_meshwright(words: Sequence[str], database: Path) -> ChildRun:
    """Start the command, wait for its end, read what the kernel counted for it (and for it alone)."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "OMP_NUM_THREADS": "1",
        "MESHWRIGHT_DATABASE": f"sqlite:///{database}",
    }
    # A machine that forbids compiled Python beside its sources would time the compiler, which no user waits for.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start_s = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, "-m", "planner.cli.main", *words], stdout=out, stderr=err, env=environment
        )
        # wait4 and not resource.getrusage(RUSAGE_CHILDREN): the latter keeps the maximum of all children.
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - start_s
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return ChildRun(
            exit_code=child.returncode,
            stdout=out.read().decode(),
            stderr=err.read().decode(),
            wall_s=wall_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_bytes=usage.ru_maxrss * 1024,
        )
