"""A command that builds its part of the command tree alone is the same command."""

from __future__ import annotations

import pytest
from typer import Typer
from typer.main import get_command
from typer.testing import CliRunner

from planner.cli.main import build_app

WHOLE = build_app()
ALONE = (
    *("plan", "estimate", "throughput", "replan", "explain", "diff", "sensitivity", "emit", "check", "run", "shard"),
    *("fleet", "goodput", "place", "diagnose", "sweep", "accuracy", "towers"),
)


def commands(app: Typer) -> list[str]:
    """Names in the order of ``--help``."""
    return list(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", commands(WHOLE))
def test_it_says_the_same(name: str) -> None:
    alone = build_app(name)
    assert commands(alone) == ([name] if name in ALONE else commands(WHOLE))
    said, wanted = (CliRunner().invoke(app, [name, "--help"], prog_name="meshwright") for app in (alone, WHOLE))
    assert said.output == wanted.output
    assert said.exit_code == wanted.exit_code == 0


@pytest.mark.parametrize("word", ["", "plna", "--help", "-o"])
def test_any_other_word_builds_the_whole_tree(word: str) -> None:
    assert commands(build_app(word)) == commands(WHOLE)
