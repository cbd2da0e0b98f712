"""A plan that the solver chose trains, and its bill names what is sent: CLI, torchrun, four gloo ranks.

The devices are slow and their links fast, so that the solver shards modules that are small enough to train here.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="sharding plans need the extra meshwright[torch]")

from planner.predict.cost.hardware import Hardware, hardware_of
from planner.shard.sharding_plan import ShardingPlan
from profiles.catalogue import load_cluster
from tests.command_line import REPOSITORY, run_here, shell_environment
from tests.rank_launch import cpu_environment, launched, torchrun
from tests.warm_python.interpreters import NATIVE, WarmPythons

pytestmark = pytest.mark.slow
CLUSTER = str(REPOSITORY / "tests" / "slow_devices.yaml")
TOLERANCE = 1e-5
MODULES = {
    "model": (
        "tests.examples.llama_block:Llama",
        {
            "vocabulary": 64, "hidden_size": 32, "ffn_size": 64, "heads": 4, "kv_heads": 2, "layers": 2,
            "sequence": 16, "batch": 8,
        },
        (),
    ),
    "block": (
        "tests.examples.llama_block:LlamaBlock",
        {"hidden_size": 32, "ffn_size": 64, "heads": 4, "kv_heads": 2, "sequence": 16, "batch": 8},
        (),
    ),
    "conv": (
        "tests.sharding_modules:ConvolutionalNet",
        {"channels": 16},
        ("images=float32[16,4,16,16]", "labels=int64[16]"),
    ),
}  # fmt: skip


class Sent(NamedTuple):
    """A resharding of the plan beside its record."""

    collectives: tuple[str, ...]
    seconds: float
    record: dict[str, Any]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the command wrote."""
    parent = tmp_path_factory.mktemp("solved")
    for name, (module, arguments, inputs) in MODULES.items():
        ran = run_here(
            *("shard", "--module", module, "--module-args", json.dumps(arguments), "--cluster", CLUSTER),
            *("--mesh", "2x2", "--dtype", "float32", "--out", str(parent / name), "-o", "json"),
            *(word for text in inputs for word in ("--input", text)),
        )
        assert ran.exit_code == 0, ran.stderr
        assert ran.json()["status"] == "optimal"
    return {name: parent / name for name in MODULES}


@pytest.fixture(scope="module")
def plans(folders: dict[str, Path]) -> dict[str, ShardingPlan]:
    """Read from the folders."""
    return {
        name: ShardingPlan.model_validate_json((folder / "sharding.json").read_text("utf-8"))
        for name, folder in folders.items()
    }


@pytest.fixture(scope="module")
def results(folders: dict[str, Path], warm_pythons: WarmPythons) -> dict[str, Any]:
    """Losses and traffic of three steps on four ranks."""
    worker = REPOSITORY / "tests" / "integration" / "sharding_run_worker.py"
    environment = cpu_environment()
    python = warm_pythons.python(NATIVE, environment).executable
    command = [*torchrun(python, 4), str(worker), "3", *map(str, folders.values())]
    done = launched(command, environment, timeout_s=400)
    assert done.returncode == 0, done.stderr[-8000:]
    return {name: json.loads(folder.with_suffix(".result").read_text("utf-8")) for name, folder in folders.items()}


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    """The devices of the plans."""
    return hardware_of(load_cluster(CLUSTER, 4), "fp32")


@pytest.mark.parametrize("name", MODULES)
def test_losses_equal_one_process(name: str, results: dict[str, Any]) -> None:
    assert results[name]["losses"] == pytest.approx(results[name]["single_process"], rel=TOLERANCE)
    assert len(set(results[name]["single_process"])) == 3


def test_the_plans_use_what_they_are_to_show(plans: dict[str, ShardingPlan]) -> None:
    states = [row for row in plans["model"].parameters if row.state_placements != row.placements]
    assert len(states) > 4, "optimizer states are cut further than weights"
    assert any("reduce_scatter" in each for row in states for each in " ".join(row.gradient_collectives).split())
    assert any(row.update_collectives for row in states)
    weights = {row.placements for row in plans["model"].parameters}
    assert len(weights) > 1, "weights are cut by features as well"
    assert any(row.name == "gradient:x" for row in plans["block"].outputs)
    assert any(row.name.startswith("buffer:") for row in plans["conv"].outputs)


@pytest.mark.parametrize("name", MODULES)
def test_all_that_is_sent_is_what_the_plan_names_and_bills(
    name: str, plans: dict[str, ShardingPlan], results: dict[str, Any], hardware: Hardware
) -> None:
    plan, traffic = plans[name], results[name]["traffic"]
    rows = list(_planned(plan, traffic))
    assert len(rows) == sum(len(traffic[part]) for part in ("operators", "step"))
    kinds: Counter[str] = Counter()
    total_s = 0.0
    for collectives, seconds, record in rows:
        steps = [_read(word) for word in collectives if not word.startswith("slice")]
        # DTensor's all-to-all is a gather and a cut on gloo.
        assert [call[:2] for call in record["calls"]] == [
            ["all_gather" if kind == "all_to_all" else kind, axis] for kind, axis in steps
        ], record
        billed_s = sum(
            _price_s(hardware, plan, kind, axis, call[2])
            for (kind, axis), call in zip(steps, record["calls"], strict=True)
        )
        assert billed_s == pytest.approx(seconds, rel=1e-6, abs=1e-11), record
        kinds.update(kind for kind, _ in steps)
        total_s += billed_s
    assert total_s == pytest.approx(plan.costs.resharding_s, rel=1e-6)
    assert traffic["unexplained"] == 0
    assert len(kinds) >= 2, kinds


def _planned(plan: ShardingPlan, traffic: dict[str, Any]) -> Iterator[Sent]:
    """The plan's reshardings in the order of the runtime, each beside its record."""
    operators = iter(traffic["operators"])
    for operator in plan.operators:
        for edge in operator.inputs:
            yield Sent(edge.collectives, edge.resharding_s, next(operators))
    step = iter(traffic["step"])
    trained = [row for row in plan.parameters if row.gradient_producer is not None]
    for row in trained:
        yield Sent(row.gradient_collectives, row.gradient_resharding_s, next(step))
    for output in plan.outputs:
        if output.name != "loss":
            yield Sent(output.collectives, output.resharding_s, next(step))
    loss = next(row for row in plan.outputs if row.name == "loss")
    yield Sent(loss.collectives, loss.resharding_s, next(step))
    # From where the plan hands it out to every rank, which is where it is.
    yield Sent((), 0.0, next(step))
    for row in trained:
        yield Sent(row.update_collectives, row.update_resharding_s, next(step))


def _read(word: str) -> tuple[str, str]:
    kind, _, axis = word.rstrip(")").partition("(")
    return kind, axis


def _price_s(hardware: Hardware, plan: ShardingPlan, kind: str, name: str, payload_bytes: int) -> float:
    """Seconds of a recorded collective (its larger side); an all-to-all counts what one rank gives."""
    axis = next(each for each in plan.mesh if each.name == name)
    moved = payload_bytes / axis.size if kind == "all_to_all" else payload_bytes
    size, stride = np.array([axis.size]), np.array([axis.stride])
    return float(hardware.collective_s(kind, np.array([moved]), size, stride)[0])  # type: ignore[arg-type]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_the_folder_of_a_transformers_config_trains(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "hidden_act": "silu",
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "tie_word_embeddings": True,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    folder, record = tmp_path / "run", tmp_path / "losses.json"
    ran = run_here(
        *("shard", "--model", str(tmp_path / "config.json"), "--batch", "8", "--sequence-length", "16"),
        *("--cluster", CLUSTER, "--mesh", "2x2", "--dtype", "float32", "--out", str(folder), "-o", "json"),
    )
    assert ran.exit_code == 0, ran.stderr
    assert any(row["state_placements"] != row["placements"] for row in ran.json()["parameters"])
    # Everything that the ranks need is in the folder.
    (tmp_path / "config.json").unlink()
    environment = shell_environment(
        {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "MASTER_PORT": str(_free_port()),
            "TRAIN_ARGS": f"--device cpu --steps 2 --learning-rate 0.01 --single-process-check --record {record}",
        }
    )
    done = launched(["bash", str(folder / "launch.sh")], environment, timeout_s=400)
    assert done.returncode == 0, done.stderr[-8000:]
    losses = json.loads(record.read_text("utf-8"))
    assert losses["ranks"] == pytest.approx(losses["single_process"], rel=TOLERANCE)
    assert losses["single_process"][0] != losses["single_process"][1]
    assert json.loads(done.stdout.splitlines()[0]) == {"step": 0, "loss": losses["ranks"][0]}
