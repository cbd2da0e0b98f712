"""From a question about an Ascend cluster to files for every launcher, and the refusal of other devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from planner.backends.folders.directory import check_directory
from tests.command_line import Ran, run_here

QUESTIONS = {
    "ascend-910b-8": (
        "--model", "llama-3.1-8b", "--cluster", "ascend-910b-8", "--devices", "16", "--global-batch-size", "64",
        "--sequence-length", "4096", "--pin", "tp=4", "--pin", "pp=2", "--pin", "cp=1",
    ),
    "ascend-910c": (
        "--model", "qwen3-30b-a3b", "--cluster", "ascend-910c", "--devices", "32", "--global-batch-size", "64",
        "--sequence-length", "4096", "--pin", "tp=1", "--pin", "pp=1", "--pin", "cp=1", "--pin", "ep=16",
    ),
}  # fmt: skip
LAUNCHER_FILES = {"torchrun": "launch.sh", "slurm": "job.sbatch", "ascendjob": "ascendjob.yaml"}


def ran(*words: str) -> Ran:
    done = run_here(*words)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize("cluster", QUESTIONS)
def test_a_plan_for_ascend_becomes_files_for_every_launcher(cluster: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    ran("plan", *QUESTIONS[cluster], "--backend", "mindspeed", "--no-store", "--plan-out", str(plan))
    for launcher, name in LAUNCHER_FILES.items():
        out = tmp_path / launcher
        ran("emit", str(plan), "--backend", "mindspeed==core_v0.12.1", "--launcher", launcher, "--out", str(out))
        assert (out / name).is_file()
        manifest = json.loads((out / "manifest.json").read_text())
        assert (manifest["backend"], manifest["release"]) == ("mindspeed", "core_v0.12.1")
        assert manifest["plan_id"] == json.loads((tmp_path / "torchrun" / "manifest.json").read_text())["plan_id"]
        assert check_directory(out) == []
    job = YAML(typ="safe", pure=True).load((tmp_path / "ascendjob" / "ascendjob.yaml").read_text())
    replicas = job["spec"]["replicaSpecs"]
    assert sum(part["replicas"] for part in replicas.values()) == 2
    assert ("sp-block" in job["metadata"]["annotations"]) == (cluster == "ascend-910c")


def test_a_question_about_other_devices_is_refused_at_once() -> None:
    question = ("--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8", "--global-batch-size", "64")
    done = run_here("plan", *question, "--sequence-length", "4096", "--backend", "mindspeed", "-o", "json")
    assert done.exit_code == 5
    assert "Huawei" in str(done.error())
    assert "NVIDIA" in str(done.error())
    assert "choose another --backend" in str(done.error())


def test_a_plan_for_other_devices_is_not_emitted(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    question = ("--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "8", "--global-batch-size", "64")
    ran("plan", *question, "--sequence-length", "4096", "--pin", "tp=1", "--no-store", "--plan-out", str(plan))
    done = run_here("emit", str(plan), "--backend", "mindspeed", "--out", str(tmp_path / "out"))
    assert done.exit_code == 8
    assert "mindspeed can run no plan" in done.stderr
    assert "Huawei" in done.stderr
    assert not (tmp_path / "out").exists()
