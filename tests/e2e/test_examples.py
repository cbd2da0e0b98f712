"""Every example is run as its ``command`` file says, from the root of the repository."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.command_line import REPOSITORY, run_here

EXAMPLES = REPOSITORY / "examples"
SCRIPTS = {"fleet", "placement", "rl", "schedulers", "serving"}
"""Their tests: ``tests/unit/planner/test_placement.py``, ``tests/integration`` (``test_fleet_page.py``,
``test_scheduler_*.py``), ``tests/unit/rl/test_rl_examples.py``, ``tests/unit/serving``."""
FOLDERS = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir() and path.name not in SCRIPTS)
LARGE = {"llama-3.1-70b-64xh100", "deepseek-v3-2048xh800"}


def command_of(example: str) -> list[str]:
    program, *words = shlex.split((EXAMPLES / example / "command").read_text(encoding="utf-8"))
    assert program == "meshwright"
    return words


@pytest.mark.parametrize(
    "example", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in FOLDERS]
)
def test_the_example_does_what_it_says(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    words = [str(tmp_path / "out") if word.startswith("out/") else word for word in command_of(example)]
    ran = run_here(*words, "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    answer = ran.json()
    assert answer["status"] in {"optimal", "feasible"}
    # Only the estimate of a given strategy bounds nothing.  A bound is of the fastest plan, which stands beside a
    # recommended one.  The step over unequal pools is simulated, and the chains of actions that bound it explain all
    # but some per cent.
    assert (answer["lower_bound_s"] is None) == (words[0] == "estimate")
    if answer["lower_bound_s"] is not None:
        fastest_s = (answer.get("fastest") or answer)["step_time_s"]
        assert answer["lower_bound_s"] >= (0.97 if example == "unequal-pools" else 0.99) * fastest_s
    assert answer["peak_memory_bytes"] <= answer["memory_limit_bytes"]
    for emission in answer.get("emissions", []):
        checked = run_here("check", emission["directory"], "-o", "json")
        assert checked.exit_code == 0, checked.stderr
        assert checked.json()["ok"]


def test_every_example_stands_in_the_readme() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in (*FOLDERS, *SCRIPTS) if f"`{name}`" not in text] == []


def test_every_input_file_of_an_example_is_used() -> None:
    for example in FOLDERS:
        used = " ".join(command_of(example))
        files = {path.name for path in (EXAMPLES / example).iterdir()} - {"command"}
        assert [name for name in files if f"examples/{example}/{name}" not in used] == []
