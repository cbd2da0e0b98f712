"""The command under a real terminal, and when a person stops it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.command_line import REPOSITORY, command, shell_environment

LONG = ("plan", "--model", "llama-3.1-405b", "--cluster", "dgx-h100", "--devices", "16384", "--no-store")
WORK = ("--global-batch-size", "2048", "--sequence-length", "8192")
DEADLINE_S = 300.0


def in_terminal(*words: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run with stdout and stderr on a pseudo-terminal; what appears on it."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command(*words),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=shell_environment({"TERM": "xterm-256color", **environment}),
        cwd=REPOSITORY,
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(leader)
    return process.wait(DEADLINE_S), seen.decode("utf-8", "replace")


def test_a_terminal_gets_colours_and_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    small = ("plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--no-store", *WORK)
    code, screen = in_terminal(*small, environment={"COLUMNS": "150"})
    assert code == 0, screen
    assert "\x1b[" in screen
    assert "searching" in screen, "the live line of the search"
    assert "PLAN" in screen


def test_no_color_is_obeyed_on_a_terminal() -> None:
    code, screen = in_terminal("plans", "list", environment={"NO_COLOR": "1"})
    assert code == 0, screen
    assert "\x1b[3" not in screen


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupted_search_says_so_and_writes_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(*LONG, *WORK, "--plan-out", str(tmp_path / "plan.json")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shell_environment(),
        cwd=REPOSITORY,
        text=True,
        # Tests that a shell started in the background inherit an ignored SIGINT; a user's command does not.
        preexec_fn=_default_interrupt,  # noqa: PLW1509  # no other thread runs here
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("checked:")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert stdout == ""
    assert "error[interrupted]" in stderr
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []
