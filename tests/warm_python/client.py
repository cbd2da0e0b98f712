"""Stands where an interpreter is expected: a process forked from the server runs the words on this one's streams.

This file is copied, as ``python`` and as ``torchrun``, into a folder with the server's socket; its first line there
names the real interpreter, which takes over where the server will not serve (``server.py`` says when).  A signal that
asks this process to end goes to the other one, whose exit code or last signal becomes its own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")
SERVER_LOST = 70
"""Exit code (EX_SOFTWARE) when the server went away while it ran the words."""


def main(words: list[str]) -> int:
    """Exit code of the words."""
    connection = served(words)
    if connection is None:
        os.execv(sys.executable, [sys.executable, *words])
    status = connection.recv(4, socket.MSG_WAITALL)
    if len(status) < 4:
        print("warm python: the server ended before the command did", file=sys.stderr)
        return SERVER_LOST
    code = os.waitstatus_to_exitcode(int.from_bytes(status, "little"))
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def served(words: list[str]) -> socket.socket | None:
    """The connection over which the server says how the words ended; None when it does not run them."""
    request = {
        "words": words,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "executable": os.path.join(HERE, "python"),
    }
    payload = json.dumps(request).encode("ascii")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Until the server runs the words, a signal ends this process, and with it the request.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        connection.connect(os.path.join(HERE, "socket"))
        socket.send_fds(connection, [len(payload).to_bytes(8, "little")], [0, 1, 2])
        connection.sendall(payload)
        if connection.recv(1) != b"W":
            return None
    except OSError:
        # The server has gone, or a stream is closed.
        return None
    for name in FORWARDED:
        signal.signal(getattr(signal, name), lambda number, _: connection.sendall(bytes([number])))
    return connection


if __name__ == "__main__":
    torchrun = os.path.basename(__file__) == "torchrun"
    # Not sys.exit: there is nothing to tear down.
    os._exit(main(["-m", "torch.distributed.run", *sys.argv[1:]] if torchrun else sys.argv[1:]))
