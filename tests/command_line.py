"""Run ``meshwright`` as tests need it: in this process with captured streams, or as a real process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.cli.main import main

REPOSITORY = Path(__file__).parents[1]
_TOLD = """import sys; sys.executable = sys.argv.pop(1)
from planner.cli.main import main; sys.exit(main(sys.argv[1:]))"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Stdout as JSON, all of it."""
        return json.loads(self.stdout)

    def error(self) -> Any:
        """The JSON error on stderr (its last object; notes may stand before it)."""
        return json.loads(self.stderr[self.stderr.index('{\n  "error"') :])["error"]


def run_here(*words: str, encoding: str = "utf-8") -> Ran:
    """Run in this process: fast, with streams of the given encoding that are no terminals."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    stderr = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    with redirect_stdout(stdout), redirect_stderr(stderr):
        code = main(list(words))
    return Ran(code, _text(stdout, encoding), _text(stderr, encoding))


def run_process(
    *words: str,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = 120,
    own_python: str | None = None,
) -> Ran:
    """Run as a user's shell would: a fresh interpreter, pipes for both streams.

    ``own_python``: what the command takes for its interpreter, when it starts others.
    """
    done = subprocess.run(
        command(*words) if own_python is None else (sys.executable, "-c", _TOLD, own_python, *words),
        capture_output=True,
        text=True,
        env=shell_environment(environment),
        cwd=cwd,
        timeout=timeout_s,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def command(*words: str) -> Sequence[str]:
    """The argument vector of a real ``meshwright``."""
    return (sys.executable, "-m", "planner.cli.main", *words)


def shell_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with the repository importable from any folder."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **(extra or {})}


def _text(stream: io.TextIOWrapper, encoding: str) -> str:
    stream.flush()
    buffer = stream.buffer
    if not isinstance(buffer, io.BytesIO):
        raise TypeError("the captured stream lost its buffer")
    return buffer.getvalue().decode(encoding)
