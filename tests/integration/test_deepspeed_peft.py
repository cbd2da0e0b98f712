"""``train_deepspeed.py`` with adapters really trains: ``launch.sh`` as it is, two CPU processes, the installed PEFT."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.backends.accelerate.validator import VALIDATOR
from planner.backends.checking.environment import make_ready
from planner.backends.emission.write import write_emission
from planner.model.hf_config import model_from_hf_config
from planner.question.problem import Workload
from planner.question.training import Training
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.rank_launch import cpu_environment, launched
from tests.validators import worker_or_skip
from tests.warm_python.interpreters import DEEPSPEED, WarmPythons

pytest.importorskip("deepspeed")
pytestmark = pytest.mark.slow

STEPS, TOLERANCE = 3, 0.001
TINY = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "vocab_size": 128,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128,
}  # fmt: skip
LORA = {"kind": "lora", "rank": 8}
SHARDED = Strategy(dp_shard=2, num_microbatches=4, zero_stage=1, overlap_grad_reduce=False, overlap_param_gather=False)
WHOLE = replace(SHARDED, zero_stage=3, recompute="full")
COUNTED = (
    "    samples = Samples(",
    "    learns = [each for each in engine.module.parameters() if each.requires_grad]\n"
    "    print('learns', sum(getattr(each, 'ds_numel', each.numel()) for each in learns), flush=True)\n"
    "    samples = Samples(",
)


Launched = Callable[[Path], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def launch(warm_pythons: WarmPythons) -> Launched:
    """Ranks forked from an interpreter that has imported DeepSpeed and PEFT, which is installed beside Accelerate."""
    worker_or_skip("accelerate")
    found = make_ready(VALIDATOR, VALIDATOR.default_version)
    if not (found / "peft").is_dir():
        pytest.skip("install the validator again: python -m tests.install_validators accelerate")
    environment = cpu_environment(DS_ACCELERATOR="cpu")
    environment["PYTHONPATH"] += os.pathsep + str(found)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment = warm_pythons.python((*DEEPSPEED, "peft"), environment).found_by(environment)

    def in_folder(path: Path) -> subprocess.CompletedProcess[str]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            own = {"STEPS": str(STEPS), "MASTER_PORT": str(probe.getsockname()[1])}
        return launched(["bash", "launch.sh"], environment | own, cwd=path, timeout_s=300)

    return in_folder


def run(path: Path, said: dict[str, Any], s: Strategy, rate: float, launch: Launched) -> tuple[list[float], set[int]]:
    """Losses, and the parameters that learn as the ranks count them."""
    workload = Workload(
        global_batch_size=8, sequence_length=32, optimizer="sgd", training=Training.model_validate(said)
    )
    plan = make_plan(s, model_from_hf_config(TINY, "tiny", "test"), workload=workload)
    write_emission(emitter("deepspeed")(plan, "torchrun"), path)
    config = json.loads((path / "ds_config.json").read_text())
    config["optimizer"]["params"]["lr"] = rate
    (path / "ds_config.json").write_text(json.dumps(config))
    script = path / "train_deepspeed.py"
    assert COUNTED[0] in script.read_text()
    script.write_text(script.read_text().replace(*COUNTED))
    done = launch(path)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    return (
        [float(line[3]) for line in lines if line[:1] == ["step"]],
        {int(line[1]) for line in lines if line[:1] == ["learns"]},
    )


def test_adapters_learn_alone_and_alike_with_every_zero_stage(tmp_path: Path, launch: Launched) -> None:
    parts = (64 * 8 + 8 * 64) * 2 + (64 * 8 + 8 * 32) * 2 + (64 * 8 + 8 * 128) * 3  # q, o; k, v; gate, up, down
    still, counted = run(tmp_path / "still", LORA, SHARDED, 0.0, launch)
    assert counted == {4 * parts}
    moved, _ = run(tmp_path / "moved", LORA, SHARDED, 4.0, launch)
    assert moved[0] == pytest.approx(still[0], abs=1e-4)
    assert max(abs(a - b) for a, b in zip(moved, still, strict=True)) > 5 * TOLERANCE
    whole, counted = run(tmp_path / "whole", LORA, WHOLE, 4.0, launch)
    assert counted == {4 * parts}
    assert whole == pytest.approx(moved, abs=TOLERANCE)


def test_dora_trains_with_whole_weights(tmp_path: Path, launch: Launched) -> None:
    losses, counted = run(
        tmp_path / "dora", {**LORA, "dora": True, "targets": "q,down"}, replace(SHARDED, zero_stage=2), 1.0, launch
    )
    assert counted == {4 * (64 * 8 + 8 * 64 + 64 + 128 * 8 + 8 * 64 + 64)}
    assert len(losses) == STEPS
