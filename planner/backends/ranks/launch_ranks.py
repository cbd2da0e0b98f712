"""Starts an emission's ranks on this machine, and makes sure that none of them stays behind.

``launch.sh`` runs as it was emitted.  It leads a session of its own, but torchrun gives each rank another one, so that
killing a process group is not enough: what is left of the whole tree of processes is ended by id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.backends.launch.torchrun import LAUNCH_SCRIPT
from planner.backends.ranks.stop_signals import leave_if_asked
from planner.errors import BackEndRefused

LOG_FILE = "ranks.log"
CLIENT_VARIABLE = "MESHWRIGHT_RANK_PYTHON"
"""Environment variable that tests set: a folder with a ``python`` and a ``torchrun`` of its own."""
LOOK_UP_S = 1.0
"""Between two looks whether somebody asked us to end."""
GRACE_S = 5.0
"""Between asking processes to end and ending them."""
WORTH_ANOTHER = {
    # How a rank of gloo now and then dies on a busy machine.
    "terminate called without an active exception": "a rank died in native code (gloo)",
    # Somebody else took it between our look and the ranks' start.
    "EADDRINUSE": "the ranks' port was taken",
}
"""What a log says of a failure that is none of the plan's, in our words; one more launch decides."""
_TAIL_LINES = 6


@dataclass(frozen=True, slots=True)
class RanksRun:
    """A launch that ended well."""

    stdout: str
    wall_s: float
    notes: tuple[str, ...] = ()
    """Why everything was started a second time, where it was."""


def run_ranks(folder: Path, variables: Mapping[str, str], deadline: float) -> RanksRun:
    """Run ``launch.sh`` until it ends or ``deadline`` (of ``time.monotonic``) has come.

    Everything that the ranks say is in ``ranks.log`` beside it.  Raises BackEndRefused when they fail or take too long.
    """
    begin = time.monotonic()
    notes: tuple[str, ...] = ()
    while True:
        code, log = _launch(folder, variables, deadline)
        if code == 0:
            stdout = (folder / f"{LOG_FILE}.stdout").read_text(encoding="utf-8", errors="replace")
            return RanksRun(stdout, time.monotonic() - begin, notes)
        reasons = [reason for said, reason in WORTH_ANOTHER.items() if said in log]
        if notes or not reasons:
            break
        notes = (f"{reasons[0]}; the ranks were started a second time",)
    raise _failure(folder, code, log)


def _launch(folder: Path, variables: Mapping[str, str], deadline: float) -> tuple[int | None, str]:
    """Exit code (None = too late) and what the ranks said on stderr."""
    with (folder / f"{LOG_FILE}.stdout").open("wb") as out, (folder / LOG_FILE).open("wb") as log:
        process = subprocess.Popen(
            ["bash", LAUNCH_SCRIPT],
            cwd=folder,
            env=rank_environment(variables),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            start_new_session=True,
        )
        code: int | None = None
        try:
            while code is None and (left_s := deadline - time.monotonic()) > 0:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=min(left_s, LOOK_UP_S))
                leave_if_asked()
        finally:
            # Ctrl-C comes here too.
            end_tree(process)
    return code, (folder / LOG_FILE).read_text(encoding="utf-8", errors="replace")


def rank_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What ``launch.sh`` sees: this interpreter first in PATH, our packages, one thread a rank, a free port."""
    root = str(Path(__file__).parents[3])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    python = rank_interpreter()
    # What lies beside our interpreter is found as well: ninja of another release builds every extension again.
    folders = dict.fromkeys(str(Path(each).parent) for each in (python, plain_interpreter()))
    return {
        **os.environ,
        "PATH": os.pathsep.join([*folders, os.environ.get("PATH", "")]),
        "PYTHON": python,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        # Devices that this machine may have are none of a CPU run's business.
        "CUDA_VISIBLE_DEVICES": "",
        **variables,
    }


def rank_interpreter() -> str:
    """The Python of every rank: ours, or the one that the environment names."""
    warm = os.environ.get(CLIENT_VARIABLE)
    return str(Path(warm) / "python") if warm else plain_interpreter()


def plain_interpreter() -> str:
    """Our Python by the real path of its environment.

    Compiled operators are built again for every path that their headers are reached by; a link to an environment is
    none of its own.
    """
    path = Path(sys.executable)
    return str(path.parent.resolve() / path.name)


def end_tree(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything below it; returns at once when nothing is left."""
    below = descendants(process.pid)
    if process.poll() is not None and not below:
        return
    _signal([process.pid, *below] if process.poll() is None else below, signal.SIGTERM)
    end = time.monotonic() + GRACE_S
    while time.monotonic() < end and (process.poll() is None or any(map(_alive, below))):
        below |= descendants(process.pid)
        time.sleep(0.05)
    _signal([pid for pid in (process.pid, *below) if _alive(pid)], signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GRACE_S)


def descendants(pid: int) -> set[int]:
    """Ids of all processes below ``pid``; empty where the system does not tell (no /proc)."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    # pid (name) state parent ...; the name may hold anything, so the last bracket counts.
                    stat = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
                    parents[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    fresh = {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def _signal(pids: list[int] | set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return not stat.rpartition(")")[2].split()[0].startswith("Z")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _failure(folder: Path, code: int | None, log: str) -> BackEndRefused:
    if code is None:
        what, hint = "the ranks did not end in time and were stopped", "allow more with --timeout, or fewer --steps"
    else:
        said = [line.strip() for line in log.splitlines() if "Error" in line or line.startswith("error:")]
        tail = "; ".join(dict.fromkeys(said[-_TAIL_LINES:])) or "see the log"
        what, hint = f"the ranks ended with exit code {code}: {tail[:600]}", "the log holds all that they said"
    return BackEndRefused(what, where=str(folder / LOG_FILE), hint=hint)
