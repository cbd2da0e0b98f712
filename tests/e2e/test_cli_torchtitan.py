"""Plan for torchtitan, emit for both launchers and releases, check with torchtitan itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import Ran, run_here
from tests.validators import worker_or_skip

pytestmark = pytest.mark.slow
PROBLEM = ("--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "16")
WORK = ("--global-batch-size", "64", "--sequence-length", "8192")


def ok(ran: Ran) -> Ran:
    assert ran.exit_code == 0, ran.stderr
    return ran


@pytest.mark.parametrize(("release", "launcher"), [("0.3.0", "torchrun"), ("0.3.0", "slurm"), ("0.2.2", "slurm")])
def test_a_plan_inside_torchtitan_is_emitted_whole_and_accepted(
    release: str, launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_or_skip("torchtitan", release).close()
    monkeypatch.setenv("MESHWRIGHT_DATABASE", f"sqlite:///{tmp_path / 'plans.db'}")
    plan = tmp_path / "plan.json"
    # A pipeline cannot be left out: it is what both dialects say differently.
    asked = ("plan", *PROBLEM, *WORK, "--backend", f"torchtitan=={release}", "--pin", "pp=2", "--plan-out", str(plan))
    answer = ok(run_here(*asked, "-o", "json")).json()
    assert answer["status"] in ("optimal", "feasible")
    folder = tmp_path / "run"
    words = ("emit", str(plan), "--launcher", launcher, "--out", str(folder))
    emitted = ok(run_here(*words, "-o", "json")).json()
    assert "launch.sh" in json.dumps(emitted)
    checked = ok(run_here("check", str(folder), "--with", f"torchtitan=={release}", "-o", "json"))
    assert '"torchtitan"' in checked.stdout
    config = folder / ("titan_plan.py" if release == "0.3.0" else "titan.toml")
    config.write_text(config.read_text(encoding="utf-8").replace("8192", "4096"), encoding="utf-8")
    edited = run_here("check", str(folder), "-o", "json")
    assert edited.exit_code == 8
    assert "4096" in edited.stdout
