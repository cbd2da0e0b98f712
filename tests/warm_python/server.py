"""Imports once, then forks a process for every command that a client brings.

``main`` says ``ready`` on stdout and ends when its stdin does; on stderr it says what it left to the real interpreter.

A fork copies one thread only and whatever locks the others held, so no import may have started a thread; and it happens
before any operator ran.  The forked process leads a session of its own, as a rank does.  It is ended when its client is
gone, which nobody could tell it otherwise after a SIGKILL, and by the kernel when the server is.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.warm_python.imported import Imported
from tests.warm_python.request import Ending, Request, become

PR_SET_PDEATHSIG = 1
READ_TIMEOUT_S = 10.0


@dataclass(slots=True)
class Server:
    """One thread that waits for clients, for the processes it forked, and for its own end."""

    listener: socket.socket
    imported: Imported
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    clients: dict[int, tuple[int, socket.socket]] = field(default_factory=dict)
    """By process: descriptor of the process, connection of its client."""

    def serve(self) -> Request | None:
        """Returns twice or more: in each forked process with what it is to run, in the server with None at the end."""
        self.selector.register(0, selectors.EVENT_READ, None)
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        while True:
            for key, _ in self.selector.select():
                if key.fd == 0:
                    self._end_all()
                    return None
                if key.fileobj is self.listener:
                    request = self._accept()
                    if request is not None:
                        return request
                elif key.data in self.clients:
                    self._heard(key.data, key.fd)

    def _accept(self) -> Request | None:
        """A request in the forked process, None in the server."""
        connection, _ = self.listener.accept()
        connection.settimeout(READ_TIMEOUT_S)
        streams: list[int] = []
        process = -1
        # A client that does not wait closes the connection, and that ends what was forked for it.
        with contextlib.suppress(OSError):
            header, streams, _, _ = socket.recv_fds(connection, 8, 3)
            request = Request(**json.loads(_received(connection, int.from_bytes(header, "little"))))
            different = sorted(self.imported.differences(request.environment))
            if len(streams) == 3 and request.command() and not different:
                process = os.fork()
            else:
                print("real interpreter:", request.words, *different, file=sys.stderr)
                connection.sendall(b"C")
        if process == 0:
            self._leave(connection, streams)
            return request
        for stream in streams:
            os.close(stream)
        if process > 0:
            self._watch(process, connection)
        else:
            connection.close()
        return None

    def _leave(self, connection: socket.socket, streams: list[int]) -> None:
        """In the forked process: let go of everything that is the server's."""
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        for descriptor, other in self.clients.values():
            os.close(descriptor)
            other.close()
        self.clients.clear()
        self.selector.close()
        self.listener.close()
        connection.close()

    def _watch(self, process: int, connection: socket.socket) -> None:
        descriptor = os.pidfd_open(process)
        self.clients[process] = descriptor, connection
        self.selector.register(descriptor, selectors.EVENT_READ, process)
        self.selector.register(connection, selectors.EVENT_READ, process)
        with contextlib.suppress(OSError):
            connection.sendall(b"W")

    def _heard(self, process: int, ready: int) -> None:
        """The process has ended, or its client forwards a signal or has gone."""
        descriptor, connection = self.clients[process]
        if ready == descriptor:
            self._ended(process)
            return
        try:
            signals = connection.recv(16)
        except OSError:
            signals = b""
        for number in signals:
            os.kill(process, number)
        if not signals:
            end_tree(process)
            self.selector.unregister(connection)

    def _ended(self, process: int) -> None:
        descriptor, connection = self.clients.pop(process)
        _, status = os.waitpid(process, 0)
        self.selector.unregister(descriptor)
        os.close(descriptor)
        if connection in self.selector.get_map():
            self.selector.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(status.to_bytes(4, "little"))
        connection.close()

    def _end_all(self) -> None:
        for process in self.clients:
            end_tree(process)
        for process in self.clients:
            os.waitpid(process, 0)


def end_tree(process: int) -> None:
    """End a process and all below it; clients among them end what the server runs for them."""
    below: list[int] = []
    # It may have ended meanwhile.
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            below += map(int, Path(f"/proc/{process}/task/{thread}/children").read_text("ascii").split())
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGKILL)
    for child in below:
        end_tree(child)


def _received(connection: socket.socket, size: int) -> bytes:
    """Exactly ``size`` bytes.  Raises OSError when the client stops before."""
    parts: list[bytes] = []
    while size:
        part = connection.recv(size)
        if not part:
            raise ConnectionError("the client went away")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def imported(modules: list[str]) -> Imported:
    """Import the modules.  Raises RuntimeError when that started a thread."""
    # The folder of ``-c``: every command brings its own.
    sys.path.remove("")
    before, path = dict(os.environ), tuple(sys.path)
    for name in modules:
        importlib.import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1 or threading.active_count() > 1:
        raise RuntimeError(f"importing {' '.join(modules)} started threads ({threads} run): a fork would lose them")
    return Imported(before, dict(os.environ), path)


def main(address: str, modules: list[str]) -> None:
    """Import, say so, serve, remove the socket's folder; in a forked process, run what was asked for."""
    ending = Ending()
    atexit.register(ending.leave)
    found = imported(modules)
    # Collections would copy the pages of every imported object into every process.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(128)
        os.write(1, b"ready\n")
        request = Server(listener, found).serve()
    if request is None:
        shutil.rmtree(Path(address).parent, ignore_errors=True)
    else:
        become(request, found)
        ending.of(request)
