"""Every ``--help``, word for word: scripts rely on it.  ``UPDATE_GOLDEN=1 pytest tests/golden`` writes it anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from planner.cli.main import build_app
from tests.command_line import run_here

FOLDER = Path(__file__).parent / "help"


def command_paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The root, every group and every command."""
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from command_paths(child, (*path, name))


PATHS = list(command_paths(typer.main.get_command(build_app())))


# A committed file that went stale is seen by the run that made it so, not by another.
@pytest.mark.budget(60)
@pytest.mark.parametrize("path", PATHS, ids="-".join)
def test_help_is_what_it_was(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ran = run_here(*path, "--help")
    assert (ran.exit_code, ran.stderr) == (0, "")
    file = FOLDER / f"{'-'.join(('meshwright', *path))}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(ran.stdout, encoding="utf-8")
    assert ran.stdout == file.read_text(encoding="utf-8")


def test_no_golden_help_is_left_over() -> None:
    names = {f"{'-'.join(('meshwright', *path))}.txt" for path in PATHS}
    assert {file.name for file in FOLDER.iterdir()} == names


@pytest.mark.budget(60)
@pytest.mark.parametrize("path", [path for path in PATHS if path], ids="-".join)
def test_every_command_says_what_it_does(path: tuple[str, ...]) -> None:
    usage, _, sentence, *_ = run_here(*path, "-h").stdout.splitlines()
    assert usage.startswith(f"Usage: meshwright {' '.join(path)}")
    assert len(sentence.strip()) > 10
