"""Start a Ray cluster for a test, kill its nodes, end it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import pytest

from tests.command_line import REPOSITORY, shell_environment

SCRIPT = REPOSITORY / "tests" / "ray_cluster_process.py"
END_S = 120
MOST_STARTS = 5


def require_ray() -> None:
    """Skip where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray (the extra meshwright[ray]) is not installed")


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A running cluster: ``address`` for drivers on this machine, ``client`` for those elsewhere."""

    address: str
    client: str
    nodes: tuple[str, ...]
    stdin: IO[str]
    stdout: IO[str]

    def kill_busy(self) -> str:
        """Wait until a task runs on a node beside the head, kill the node, and return its id."""
        self.stdin.write("kill-busy\n")
        self.stdin.flush()
        answer = _line(self.stdout)
        if answer is None:
            raise RuntimeError("the Ray cluster ended; its reason is on stderr")
        return str(answer["killed"])


@contextmanager
def ray_cluster(num_nodes: int, sources: Path = REPOSITORY) -> Iterator[RayCluster]:
    """Nodes of one CPU whose workers import Meshwright from ``sources`` and share a data folder of their own."""
    with TemporaryDirectory(prefix="mwray") as home:
        yield from _running(num_nodes, sources, home)


def _running(num_nodes: int, sources: Path, home: str) -> Iterator[RayCluster]:
    process, said = _started(num_nodes, sources, home)
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise RuntimeError("the process has no pipes")
    try:
        yield RayCluster(said["address"], said["client"], tuple(said["nodes"]), stdin, stdout)
    finally:
        _end(process)


def _started(num_nodes: int, sources: Path, home: str) -> tuple[subprocess.Popen[str], Any]:
    """The process and its first line.  Ray gives a node 30 s to come up, which a busy machine may not have: again."""
    variables = {"PYTHONPATH": str(sources), "XDG_DATA_HOME": home, "RAY_USAGE_STATS_ENABLED": "0"}
    variables["RAY_agent_register_timeout_ms"] = "300000"
    for _ in range(MOST_STARTS):
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(num_nodes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=shell_environment(variables),
            cwd=sources,
            text=True,
        )
        said = _line(process.stdout)
        if said is not None:
            return process, said
        _end(process)
    raise RuntimeError(f"the Ray cluster did not start in {MOST_STARTS} tries; its reasons are on stderr")


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _line(stdout: IO[str] | None) -> Any:
    """The next line of JSON, None at the end; what Ray prints besides is passed over."""
    return next((json.loads(line) for line in stdout or () if line.startswith("{")), None)
