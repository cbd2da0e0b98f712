"""A real service and its worker, to be killed and restarted: ``meshwright serve``, as processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from tests.command_line import REPOSITORY, command, shell_environment

START_S = 300.0
END_S = 300.0


class MeshwrightProcess:
    """One ``meshwright`` command that runs until it is told to end; what it says is in a file."""

    def __init__(self, words: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.words, self.log_path, self._environment = list(words), log, environment
        self.prefix: Sequence[str] = ()
        self.process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log_path.open("ab") as output:
            return subprocess.Popen(
                [*self.prefix, *command(*self.words)],
                cwd=REPOSITORY,
                env=shell_environment({"OMP_NUM_THREADS": "1", **(self._environment or {})}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Requests to end reach it also where they are ignored here (nohup, a shell's background).
                preexec_fn=_default_signals,  # noqa: PLW1509
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def log(self) -> str:
        """Everything that it and those started in its place have said."""
        return self.log_path.read_text(errors="replace")

    def _await(self, begun: Callable[[], bool]) -> None:
        end_s = time.monotonic() + START_S
        while not begun():
            if self.process.poll() is not None or time.monotonic() > end_s:
                self.kill()
                raise RuntimeError(f"{self.words[0]} did not start:\n{self.log}")
            time.sleep(0.05)

    def terminate(self) -> float:
        """SIGTERM; seconds until it has ended."""
        start_s = time.monotonic()
        self.process.terminate()
        self.process.wait(END_S)
        return time.monotonic() - start_s

    def kill(self) -> None:
        """kill -9; harmless for one that has ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_S)

    def start_again(self) -> None:
        """The same command anew."""
        self.process = self._spawn()


class ServiceProcess(MeshwrightProcess):
    """``meshwright serve`` on a port of its own, which it keeps when it is started again."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *flags: str,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        port = _free_port()
        self.address = f"http://127.0.0.1:{port}"
        file = folder / f"settings-{port}.json"
        file.write_text(json.dumps(settings or {}))
        words = ["serve", "--port", str(port), "--processes", "1", "--settings", str(file), "--database", url]
        super().__init__([*words, *flags], folder / f"serve-{port}.log", environment)
        self._await(lambda: self.answers("/livez"))

    def start_again(self) -> None:
        """The same command anew; returns when it answers."""
        super().start_again()
        self._await(lambda: self.answers("/livez"))

    def answers(self, path: str) -> bool:
        """Whether it says 200 there now."""
        try:
            return httpx.get(self.address + path, timeout=30).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


class WorkerCommand(MeshwrightProcess):
    """``meshwright worker`` with a short lease."""

    def __init__(self, url: str, folder: Path, *flags: str, lease_s: float = 4.0) -> None:
        words = ["worker", "--database", url, "--lease", str(lease_s), "--memory-limit", "2", *flags]
        super().__init__(words, folder / f"worker-{os.urandom(4).hex()}.log")
        self._starts = 0
        self._await_start()

    def start_again(self) -> None:
        """The same command anew; returns when it takes jobs."""
        super().start_again()
        self._await_start()

    def _await_start(self) -> None:
        self._starts += 1
        self._await(lambda: self.log.count("takes jobs") >= self._starts)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
