"""Stands in for ``python`` and ``torchrun``: hands the call over to a warm server, which forks what it asks for.

Run with the standard library alone (``-I -S``), so that it starts in a few hundredths of a second.  What the server
does not do (``-c``, other options), and everything once there is no server, the real interpreter does.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys

AS_MODULE = {"torchrun": "torch.distributed.run"}


def main(socket_path: str, interpreter: str) -> None:
    """Ask, wait, and end as the forked process ended."""
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    if name in AS_MODULE:
        words = ["-m", AS_MODULE[name], *words]
    plain = words[1:] if words[:1] == ["-u"] else words
    if not plain or (plain[0].startswith("-") and plain[0] != "-m"):
        os.execv(interpreter, [interpreter, *words])
    code = _asked(socket_path, {"words": plain, "folder": os.getcwd(), "environment": dict(os.environ)})
    if code is None:
        os.execv(interpreter, [interpreter, *words])
    elif code < 0:
        with contextlib.suppress(OSError):  # nobody handles SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _asked(path: str, request: dict[str, object]) -> int | None:
    """Exit code, negative for a signal; None where nobody listens."""
    message = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(path)
        except OSError:
            return None
        socket.send_fds(server, [len(message).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(message)
        answer = b""
        while chunk := server.recv(64):
            answer += chunk
    return int(answer) if answer else 1
