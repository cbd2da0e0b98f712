"""``meshwright run --tiny``: real ranks, real launch files, the losses of one process.

Where ranks are only to train, they are forked from an interpreter that has imported: the command is told that it is its
own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from planner.backends.ranks.extension_cache import ENVIRONMENT_VARIABLE, extension_folder
from planner.backends.ranks.launch_ranks import descendants
from planner.model.load import load_model
from planner.operations.plan_reference import full_document
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.command_line import REPOSITORY, run_process, shell_environment
from tests.plan_factory import make_plan
from tests.rank_launch import cpu_environment
from tests.validators import worker_or_skip
from tests.warm_python.interpreters import DEEPSPEED, NATIVE, WarmPython, WarmPythons

pytestmark = pytest.mark.slow
pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")


def plan_file(folder: Path, strategy: Strategy, layers: tuple[int, ...] | None = None, backend: str = "native") -> Path:
    """A plan of Llama-3.1-8B for a back-end, as a file."""
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=8192)
    plan = make_plan(strategy, load_model("llama-3.1-8b"), workload=workload, layers_per_chunk=layers, backend=backend)
    path = folder / "plan.json"
    path.write_text(json.dumps(full_document(plan)), encoding="utf-8")
    return path


def answer(path: Path, *words: str, python: WarmPython | None = None) -> dict[str, Any]:
    """The JSON of a run that ends well; ``python`` starts its ranks."""
    executable = None if python is None else python.executable
    done = run_process("run", str(path), "--tiny", "-o", "json", *words, timeout_s=600, own_python=executable)
    assert done.exit_code == 0, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    assert data["parity"] is True
    assert len(data["steps"]) == 3
    assert all(step["relative_difference"] <= 1e-5 for step in data["steps"])
    assert len({step["loss"] for step in data["steps"]}) == 3
    return data


def test_native_tp_and_an_uneven_pipeline(tmp_path: Path, warm_pythons: WarmPythons) -> None:
    path = plan_file(tmp_path, Strategy(tp=2, sp=True, pp=2, num_microbatches=16), (15, 17))
    data = answer(path, "--keep", str(tmp_path / "kept"), python=warm_pythons.python(NATIVE, cpu_environment()))
    assert data["mesh"]["ranks"] == 4
    assert data["shrunk"]["layers"] == {"from": 32, "to": 3}
    assert (tmp_path / "kept" / "ranks" / "launch.sh").is_file()


def test_native_fsdp_on_a_mesh_that_is_cut(tmp_path: Path) -> None:
    path = plan_file(tmp_path, Strategy(dp_shard=64, zero_stage=3, num_microbatches=4))
    data = answer(path, "--max-ranks", "2")
    assert data["mesh"]["ranks"] == 2
    assert data["shrunk"]["dp_shard"] == {"from": 64, "to": 2}
    assert data["directory"] is None


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("deepspeed", "transformers")),
    reason="deepspeed and transformers are not installed",
)
def test_deepspeed_zero_3(tmp_path: Path, warm_pythons: WarmPythons) -> None:
    path = plan_file(
        tmp_path, Strategy(dp_shard=2, zero_stage=3, num_microbatches=4, recompute="full"), backend="deepspeed"
    )
    own = {"DS_ACCELERATOR": "cpu", "TRANSFORMERS_OFFLINE": "1", ENVIRONMENT_VARIABLE: str(extension_folder())}
    python = warm_pythons.python(DEEPSPEED, cpu_environment(**own))
    data = answer(path, "--timeout", "500", python=python)
    assert data["backend"] == "deepspeed"


def test_megatron_tp(tmp_path: Path, warm_pythons: WarmPythons) -> None:
    worker_or_skip("megatron-core").close()
    path = plan_file(tmp_path, Strategy(tp=2, sp=True, num_microbatches=8), backend="megatron")
    data = answer(path, python=warm_pythons.python(NATIVE, cpu_environment()))
    assert (data["backend"], data["mesh"]["ranks"], data["mesh"]["tp"]) == ("megatron", 2, 2)
    assert "--transformer-impl" in data["notes"][0]


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_request_to_end_leaves_no_rank_behind(number: signal.Signals, exit_code: int, tmp_path: Path) -> None:
    path = plan_file(tmp_path, Strategy(dp_shard=2, num_microbatches=4))
    command = [sys.executable, "-m", "planner.cli.main", "run", str(path), "--tiny", "--steps", "1000", "-q"]
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=shell_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    below: set[int] = set()
    try:
        end = time.monotonic() + 120
        # torchrun (which bash became) and two ranks.
        while len(below) < 3 and process.poll() is None and time.monotonic() < end:
            below |= descendants(process.pid)
            time.sleep(0.2)
        assert len(below) >= 3
        os.kill(process.pid, number)
        _, said = process.communicate(timeout=600)
        assert process.returncode == exit_code, said.decode()
        assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]
    finally:
        for pid in (process.pid, *descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_without_tiny_nothing_is_started(tmp_path: Path) -> None:
    path = plan_file(tmp_path, Strategy(dp_shard=2, num_microbatches=4))
    done = run_process("run", str(path))
    assert done.exit_code == 2
    assert "--tiny" in done.stderr


def test_a_plan_without_a_runner_names_those_that_have_one(tmp_path: Path) -> None:
    path = plan_file(tmp_path, Strategy(dp_shard=2, zero_stage=2, num_microbatches=4), backend="mindspeed")
    for words in ((), ("--backend", "mindspeed")):
        done = run_process("run", str(path), "--tiny", *words)
        assert done.exit_code == 2
        assert "mindspeed has no runner" in done.stderr
        assert "megatron, deepspeed, torchtitan, native, accelerate" in done.stderr


def test_another_back_end_runs_its_own_plan_of_the_question(tmp_path: Path, warm_pythons: WarmPythons) -> None:
    # On two devices no plan of native fits the memory.
    path = plan_file(tmp_path, Strategy(dp_shard=4, zero_stage=1, num_microbatches=4), backend="torchtitan")
    database = ("--database", f"sqlite:///{tmp_path / 'plans.db'}")
    python = warm_pythons.python(NATIVE, cpu_environment())
    data = answer(path, "--backend", "native", "--max-ranks", "4", *database, python=python)
    assert data["backend"] == "native"
    assert data["plan_id"] != json.loads(path.read_text(encoding="utf-8"))["plan_id"]
    assert data["difference"]["b"] == data["plan_id"]
    kept = run_process("plans", "show", data["plan_id"], "-o", "json", *database)
    assert json.loads(kept.stdout)["backend"] == "native"
