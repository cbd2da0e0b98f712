"""The trainer when it cannot start: one error on standard error, the documented exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.strategy.strategy import Strategy
from tests.native_models import tiny_plan
from tests.plan_factory import make_mla_model, make_plan

pytestmark = pytest.mark.slow
pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

ROOT = Path(__file__).parents[2]


def start(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the trainer as one process."""
    return subprocess.run(
        [sys.executable, "-m", "planner.backends.native.trainer.train", *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def test_another_number_of_processes(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(tiny_plan(Strategy(tp=2, num_microbatches=8)).canonical_json(), encoding="utf-8")
    done = start(str(path), "--device", "cpu")
    assert done.returncode == 2
    assert done.stderr.startswith("error: the plan is for 2 ranks, and 1 was started")
    assert "Traceback" not in done.stderr
    quiet = start(str(path), "--device", "cpu", RANK="1", WORLD_SIZE="4")
    assert (quiet.returncode, quiet.stderr) == (2, "")


def test_a_plan_that_cannot_run(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(make_plan(Strategy(), make_mla_model()).canonical_json(), encoding="utf-8")
    done = start(str(path), "--device", "cpu")
    assert done.returncode == 8
    assert "native.M1" in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_flags(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(tiny_plan(Strategy(num_microbatches=8)).canonical_json(), encoding="utf-8")
    assert start(str(path), "--device", "cpu", "--steps", "0").returncode == 2
    assert start(str(path), "--device", "cpu", "--data", "json:nothere").returncode == 2
    assert start(str(tmp_path / "nothing.json"), "--device", "cpu").returncode == 3


def test_one_process_trains_and_agrees_with_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(tiny_plan(Strategy(num_microbatches=8)).canonical_json(), encoding="utf-8")
    done = start(str(path), "--device", "cpu", "--steps", "2", "--single-process-check")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert "largest relative difference to a single process" in done.stderr
