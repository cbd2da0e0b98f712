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
SAMPLED_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class ChildRun:
    """One finished process."""

    exit_code: int
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float
    peak_bytes: int


def run_meshwright(words: Sequence[str], database: Path, *, together: bool = False) -> ChildRun:
    """Start the command, wait for its end, read what the kernel counted for it and its children.

    ``together``: where several of its processes live at a time, the peak memory is that of all of them, sampled, if
    that is more than the peak of the largest one.
    """
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
        sampled = _sampled_bytes(child.pid) if together else 0
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
            peak_bytes=max(usage.ru_maxrss * 1024, sampled),
        )


def _sampled_bytes(process: int) -> int:
    """Most memory that a process and its children were seen to hold, until the process ends; shared pages count once.

    Looked at only while there are children: reading what a process shares takes time from it.
    """
    most = 0
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        children = _read(f"/proc/{process}/task/{process}/children").split()
        if children:
            held = [_read(f"/proc/{each}/smaps_rollup") for each in (process, *children)]
            lines = (line.split() for text in held for line in text.splitlines() if line.startswith("Pss:"))
            most = max(most, 1024 * sum(int(words[1]) for words in lines))
        time.sleep(SAMPLED_EVERY_S)
    return most


def _read(path: str) -> str:
    """A file of the kernel; empty where its process has ended."""
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""
