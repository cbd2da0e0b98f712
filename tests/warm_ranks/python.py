"""Starts many ranks one after the other without importing torch each time: a server that forks them.

    with warm_python(("torch", "deepspeed"), variables):
        tiny_run(...)

Inside, ``launch.sh`` finds a ``python`` and a ``torchrun`` that are clients of the server.  torchrun's own code runs,
and starts the ranks as it does; only the imports are shared.  For a corpus of plans and for tests; a single run has
nothing to share.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.backends.ranks.launch_ranks import CLIENT_VARIABLE, end_tree, plain_interpreter, rank_environment
from planner.errors import BackEndRefused
from tests.warm_ranks import client, server
from tests.warm_ranks.server import READY

NAMES = ("python", "python3", "torchrun")


@contextlib.contextmanager
def warm_python(modules: tuple[str, ...], variables: Mapping[str, str], python: str = "") -> Iterator[Path]:
    """The folder of the clients, known to every launch inside.

    ``variables``: what the ranks' environment has at import; ``python``: an interpreter other than ours.  Raises
    BackEndRefused when the imports fail.
    """
    folder = Path(tempfile.mkdtemp(prefix="warm-python-"))
    path = folder / "socket"
    python = python or plain_interpreter()
    for name in NAMES:
        _write_client(folder / name, path, python)
    process = subprocess.Popen(
        [python, "-m", server.__name__, str(path), *modules],
        env=rank_environment(variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # It ends with us, in good order; not by a signal to our group.
        start_new_session=True,
    )
    before = os.environ.get(CLIENT_VARIABLE)
    try:
        if process.stdout is None or process.stdout.readline() != READY.encode():
            raise BackEndRefused("the server of warm ranks did not start", where=", ".join(modules))
        os.environ[CLIENT_VARIABLE] = str(folder)
        yield folder
    finally:
        os.environ.pop(CLIENT_VARIABLE, None)
        if before is not None:
            os.environ[CLIENT_VARIABLE] = before
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        if process.stdout is not None:
            process.stdout.close()
        end_tree(process)
        shutil.rmtree(folder, ignore_errors=True)


def _write_client(path: Path, socket: Path, python: str) -> None:
    text = Path(client.__file__).read_text(encoding="utf-8")
    call = f"\n\nif __name__ == '__main__':\n    main({str(socket)!r}, {python!r})\n"
    path.write_text(f"#!{python} -IS\n{text}{call}", encoding="utf-8")
    path.chmod(0o755)
