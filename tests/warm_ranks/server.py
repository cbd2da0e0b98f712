"""Forks Python processes that have torch and a back-end imported already: the other end of ``client``.

    python -m tests.warm_ranks.server SOCKET MODULE...

A fork runs the asked script or module in the asked folder, environment and streams, as ``python`` would; it ends when
its client does.  The server itself ends when its standard input is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.backends.ranks.launch_ranks import CLIENT_VARIABLE, GRACE_S, descendants

_PARENT_DEATH_SIGNAL = 1
"""prctl(2)."""
READY = "ready\n"


@dataclass(slots=True)
class Fork:
    """One running process and who asked for it."""

    pid: int
    pidfd: int
    client: socket.socket
    kill_at: float | None = None


class Server:
    """The loop; ``run`` returns only in a fork, with what it is to do."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.forks: list[Fork] = []
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ, None)
        self.selector.register(0, selectors.EVENT_READ, None)

    def run(self) -> tuple[Mapping[str, Any], list[int]] | None:
        """The request and streams of a fork, in that fork; None once the owner has gone."""
        while True:
            for key, _ in self.selector.select(timeout=0.5):
                if key.fileobj == 0:
                    self._end_all()
                    return None
                if key.fileobj is self.listener:
                    asked = self._accept()
                    if asked is not None:
                        return asked
                elif key.data in self.forks:
                    self._look(key.data, at_client=key.fileobj is key.data.client)
            self._kill_late()

    def _accept(self) -> tuple[Mapping[str, Any], list[int]] | None:
        client, _ = self.listener.accept()
        try:
            head, streams, _, _ = socket.recv_fds(client, 8, 3)
            request = json.loads(_exactly(client, int.from_bytes(head, "big")))
        except (OSError, ValueError):
            client.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._leave(client)
            return request, streams
        for stream in streams:
            os.close(stream)
        fork = Fork(pid, os.pidfd_open(pid), client)
        self.forks.append(fork)
        self.selector.register(client, selectors.EVENT_READ, fork)
        self.selector.register(fork.pidfd, selectors.EVENT_READ, fork)
        return None

    def _leave(self, client: socket.socket) -> None:
        """In a fork: nothing of the server stays open."""
        self.selector.close()
        self.listener.close()
        client.close()
        for fork in self.forks:
            os.close(fork.pidfd)
            fork.client.close()

    def _look(self, fork: Fork, *, at_client: bool) -> None:
        if at_client:
            # A client says nothing more: it has gone.
            self.selector.unregister(fork.client)
            _signal(fork.pid, signal.SIGTERM)
            fork.kill_at = time.monotonic() + GRACE_S
            return
        _, status = os.waitpid(fork.pid, 0)
        self.selector.unregister(fork.pidfd)
        os.close(fork.pidfd)
        if fork.kill_at is None:
            self.selector.unregister(fork.client)
        with contextlib.suppress(OSError):
            fork.client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        fork.client.close()
        self.forks.remove(fork)

    def _kill_late(self) -> None:
        for fork in self.forks:
            if fork.kill_at is not None and time.monotonic() > fork.kill_at:
                _kill_tree(fork.pid)

    def _end_all(self) -> None:
        for fork in self.forks:
            _kill_tree(fork.pid)


def _exactly(client: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = client.recv(size - len(parts))
        if not part:
            raise ValueError("the client left")
        parts += part
    return parts


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _kill_tree(pid: int) -> None:
    for each in (pid, *descendants(pid)):
        _signal(each, signal.SIGKILL)


def become(request: Mapping[str, Any], streams: list[int], own_paths: list[str]) -> None:
    """Run what was asked, as ``python [-m] WORDS`` would; raises what that raises."""
    os.setsid()
    # However the server ends, no fork stays.
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    random.seed()
    words = list(request["words"])
    module = words.pop(0) == "-m" if words[0] == "-m" else False
    name = words[0]
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    first = os.getcwd() if module else str(Path(name).resolve().parent)
    sys.path[:] = [first, *given, *own_paths]
    importlib.invalidate_caches()
    sys.argv = words
    if CLIENT_VARIABLE in os.environ:
        # What a fork starts by its own interpreter (torchrun its ranks) is forked as well.
        sys.executable = str(Path(os.environ[CLIENT_VARIABLE]) / "python")
    if module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(name, run_name="__main__")


def main() -> None:
    """Import, listen, fork."""
    path, *modules = sys.argv[1:]
    # What imports print is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for module in modules:
        importlib.import_module(module)
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        raise SystemExit(f"error: {threads} threads after the imports; a fork would have one of them")
    given = {path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path}
    own_paths = [path for path in sys.path[1:] if path not in given]
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        answers.write(READY)
        answers.close()
        asked = Server(listener).run()
    if asked is not None:
        become(*asked, own_paths)


if __name__ == "__main__":
    main()
