"""What everybody on the machine can read of a worker: its command line, and that of every process that it starts."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from api.worker.embedded import start_embedded_worker
from tests.job_workers import PATIENCE_S, quick_settings, wait_for


def _descendants(process: int) -> list[int]:
    """The process and whatever it has started, that the kernel still knows."""
    found = [process]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(word) for word in task.read_text(encoding="ascii").split()]
            except OSError:
                continue
    return found


def _command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.mark.postgres
def test_no_command_line_holds_the_database_password(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = secrets.token_hex(16)
    monkeypatch.chdir(Path(__file__).parents[2])
    # The test server asks for no password, and takes one all the same.
    url = postgres_url.replace("://meshwright@", f"://meshwright:{password}@")
    assert password in url
    worker = start_embedded_worker(quick_settings(url))
    try:
        # A solving process stands ready once the worker has read its settings and reached the database.
        wait_for(
            lambda: any("solving.child" in _command_line(each) for each in _children()), PATIENCE_S, "the worker works"
        )
        lines = [_command_line(each) for each in _children()]
    finally:
        worker.stop()
    assert any("api.worker" in line for line in lines)
    assert [line for line in lines if password in line] == []


def _solver_stands_ready() -> bool:
    return any("solving.child" in _command_line(each) for each in _children())


def _children() -> list[int]:
    return [each for each in _descendants(os.getpid()) if each != os.getpid()]
