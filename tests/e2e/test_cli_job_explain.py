"""``explain --why-not FILE`` compares a plan with the run of any file that ``--from`` reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import run_here
from tests.e2e.test_cli_job_files import ACCELERATE, BRIDGE, DEEPSPEED, MAXTEXT, TITAN

FILES = {
    "recipe.py": (BRIDGE, "megatron-bridge"),
    "train.toml": (TITAN, "torchtitan"),
    "train.yml": (MAXTEXT, "maxtext"),
    "ds.json": (DEEPSPEED, "deepspeed"),
    "a.yaml": (ACCELERATE, "accelerate"),
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plans") / "plan.json"
    words = ("--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8", "--sequence-length", "2048")
    ran = run_here("plan", *words, "--global-batch-size", "64", "--plan-out", str(file), "-o", "json", "--quiet")
    assert ran.exit_code == 0, ran.stderr
    return file


@pytest.mark.parametrize("name", FILES)
def test_why_not_the_run_of_a_job_file(plan: Path, tmp_path: Path, name: str) -> None:
    text, backend = FILES[name]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    ran = run_here("explain", str(plan), "--why-not", str(file), "-o", "json", "--quiet")
    assert ran.exit_code == 0, ran.stderr
    found = ran.json()
    assert found["script"]["software"].split("==")[0] == backend
    assert found["other"]["backend"].split("==")[0] == backend
    assert found["other"]["step_time_s"] > 0


def test_a_file_of_another_model_is_refused(plan: Path, tmp_path: Path) -> None:
    file = tmp_path / "recipe.py"
    file.write_text(BRIDGE.replace("llama3_8b", "llama3_70b"), encoding="utf-8")
    error = run_here("explain", str(plan), "--why-not", str(file), "-o", "json", "--quiet").error()
    assert "another model" in error["what"]
