from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.native.read import read_back
from planner.backends.native.write import write
from planner.backends.registry import backend
from planner.errors import BackEndRefused, DocumentInvalid
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.native_models import tiny_llama, tiny_plan
from tests.plan_factory import make_mla_model, make_plan

emit = emitter("native")

PLANS = [
    make_plan(Strategy(tp=4, sp=True, dp_shard=2, zero_stage=3, num_microbatches=4)),
    make_plan(Strategy(pp=2, vpp=2, schedule="zbv", num_microbatches=8), layers_per_chunk=(1, 3, 3, 1)),
    make_plan(Strategy(pp=2, num_microbatches=8, recompute="full"), recompute_layers_per_chunk=(1, 4)),
    make_plan(Strategy(pp=2, dp_shard=2, zero_stage=1, num_microbatches=8, overlap_grad_reduce=False)),
]


def test_the_registry_finds_the_back_end() -> None:
    files = backend("native").files
    assert files is not None
    assert files().write is write


@pytest.mark.parametrize("plan", PLANS)
def test_read_back_is_the_plan(plan: Plan) -> None:
    emission = emit(plan, "torchrun")
    assert emission.plan == plan
    assert read_back(emission.files) == (plan.chosen(), layout_of(plan))


@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
def test_a_written_emission_passes_its_own_check(launcher: str, tmp_path: Path) -> None:
    write_emission(emit(PLANS[0], "slurm" if launcher == "slurm" else "torchrun"), tmp_path / "out")
    assert check_directory(tmp_path / "out") == []


def test_scripts_are_bash_and_executable(tmp_path: Path) -> None:
    emission = emit(PLANS[0], "torchrun")
    write_emission(emission, tmp_path / "out")
    for name in ("train.sh", "launch.sh"):
        assert os.access(tmp_path / "out" / name, os.X_OK)
        subprocess.run(["bash", "-n", str(tmp_path / "out" / name)], check=True)


def test_train_script_passes_words_to_the_trainer(tmp_path: Path) -> None:
    write_emission(emit(PLANS[0], "torchrun"), tmp_path / "out")
    recorder = tmp_path / "python"
    recorder.write_text("#!/usr/bin/env bash\nprintf '%s\\n' \"$@\"\n", encoding="utf-8")
    recorder.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(recorder), "TRAIN_ARGS": "--device cpu --steps 2"}
    done = subprocess.run(
        [str(tmp_path / "out" / "train.sh"), "--seed", "7"], env=environment, capture_output=True, text=True, check=True
    )
    words = done.stdout.split()
    assert words[:3] == ["-u", "-m", "planner.backends.native.trainer.train"]
    assert words[3:] == [str(tmp_path / "out" / "plan.json"), "--device", "cpu", "--steps", "2", "--seed", "7"]


def test_a_plan_it_cannot_run_is_refused_with_every_rule() -> None:
    plan = make_plan(Strategy(etp=2, tp=2, num_microbatches=2), make_mla_model(num_mtp_layers=1))
    with pytest.raises(BackEndRefused) as refused:
        emit(plan, "torchrun")
    for rule in ("native.M1", "native.M2", "native.E2", "native.E3"):
        assert rule in refused.value.what


def test_read_back_notices_another_number_of_ranks() -> None:
    files = dict(emit(PLANS[0], "torchrun").files)
    files["launch.sh"] = files["launch.sh"].replace("DEVICES_PER_NODE=8", "DEVICES_PER_NODE=4")
    with pytest.raises(DocumentInvalid, match="starts 4 ranks, the plan has 8"):
        read_back(files)


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense"])
def test_read_back_refuses_what_is_no_plan(text: str) -> None:
    files = {**emit(PLANS[0], "torchrun").files, "plan.json": text}
    with pytest.raises(DocumentInvalid, match="not a plan"):
        read_back(files)


def test_read_back_needs_its_files() -> None:
    with pytest.raises(DocumentInvalid, match="is missing"):
        read_back({})


def test_assumptions_say_what_the_trainer_does_otherwise() -> None:
    ring = emit(tiny_plan(Strategy(cp=2, cp_kind="ring", num_microbatches=8)), "torchrun")
    assert any("all-gather of keys and values" in line for line in ring.written.assumptions)
    plain = emit(tiny_plan(Strategy(num_microbatches=8), tiny_llama()), "torchrun")
    assert not any("all-gather of keys and values" in line for line in plain.written.assumptions)


def test_emitting_needs_no_torch() -> None:
    code = "import sys, planner.backends.native, json; print(json.dumps('torch' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
