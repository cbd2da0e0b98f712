from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from planner.backends.launch.launchers import launch_files
from planner.backends.launch.spec import LaunchSpec, launch_spec
from planner.backends.launch.torchrun import read_world_size
from planner.errors import BackEndRefused, DocumentInvalid, NotFound
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_plan

SPEC = LaunchSpec(
    job_name="llama-1234abcd",
    num_nodes=4,
    devices_per_node=8,
    script="train.sh",
    arguments=("--name", "two words"),
    environment={"QUOTED": "a'b $HOME", "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
)


def lay_out(tmp_path: Path, spec: LaunchSpec, launcher: str) -> Path:
    made = launch_files(spec, launcher)  # type: ignore[arg-type]
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def program(directory: Path, name: str, body: str) -> None:
    """A program that stands in for one that only a cluster has."""
    path = directory / name
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run(command: list[str], path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    full = {"PATH": f"{path}:{os.environ['PATH']}", **environ}
    return subprocess.run(command, env=full, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
@pytest.mark.parametrize("num_nodes", [1, 4])
def test_every_script_is_valid_bash(tmp_path: Path, launcher: str, num_nodes: int) -> None:
    spec = LaunchSpec("job", num_nodes, 8, "train.py", environment=SPEC.environment)
    made = launch_files(spec, launcher)  # type: ignore[arg-type]
    lay_out(tmp_path, spec, launcher)
    for name in made.files:
        checked = subprocess.run(["bash", "-n", str(tmp_path / name)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert read_world_size(made.files["launch.sh"]) == 8 * num_nodes


def test_the_node_script_passes_placement_script_and_environment(tmp_path: Path) -> None:
    lay_out(tmp_path, SPEC, "torchrun")
    program(tmp_path, "torchrun", 'printf "%s\\n" "$@"; echo "$QUOTED"')
    done = run(["bash", str(tmp_path / "launch.sh"), "3"], tmp_path, MASTER_ADDR="n0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "--nnodes=4",
        "--nproc-per-node=8",
        "--node-rank=3",
        "--master-addr=n0",
        "--master-port=29500",
        "--no-python",
        "./train.sh",
        "--name",
        "two words",
        "a'b $HOME",
    ]


@pytest.mark.parametrize(
    ("given", "missing"), [({"MASTER_ADDR": "n0"}, "NODE_RANK"), ({"NODE_RANK": "0"}, "MASTER_ADDR")]
)
def test_several_nodes_need_a_rank_and_a_master(tmp_path: Path, given: dict[str, str], missing: str) -> None:
    lay_out(tmp_path, SPEC, "torchrun")
    done = run(["bash", str(tmp_path / "launch.sh")], tmp_path, **given)
    assert done.returncode != 0
    assert missing in done.stderr


def test_one_node_needs_nothing(tmp_path: Path) -> None:
    lay_out(tmp_path, LaunchSpec("job", 1, 2, "train.py"), "torchrun")
    program(tmp_path, "torchrun", 'echo "$*"')
    done = run(["bash", str(tmp_path / "launch.sh")], tmp_path)
    assert done.stdout.split() == [
        "--nnodes=1",
        "--nproc-per-node=2",
        "--node-rank=0",
        "--master-addr=127.0.0.1",
        "--master-port=29500",
        "./train.py",
    ]


def test_slurm_starts_one_task_a_node_in_block_order(tmp_path: Path) -> None:
    lay_out(tmp_path, SPEC, "slurm")
    program(tmp_path, "scontrol", "printf 'n10\\nn2\\n'")
    program(tmp_path, "torchrun", 'echo "$MASTER_ADDR $*"')
    # The stand-in runs the task of one node, as Slurm would with its node id.
    program(tmp_path, "srun", 'while [ "${1#--}" != "$1" ]; do echo "$1"; shift; done; SLURM_NODEID=2 "$@"')
    done = run(
        ["bash", str(tmp_path / "job.sbatch")],
        tmp_path,
        SLURM_SUBMIT_DIR=str(tmp_path),
        SLURM_JOB_NODELIST="n[2,10]",
        SLURM_JOB_NUM_NODES="4",
    )
    assert done.returncode == 0, done.stderr
    assert "--distribution=block" in done.stdout.split()
    assert "n10 --nnodes=4 --nproc-per-node=8 --node-rank=2" in done.stdout


def test_slurm_submitted_elsewhere_says_what_to_do(tmp_path: Path) -> None:
    lay_out(tmp_path, SPEC, "slurm")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = run(["bash", str(tmp_path / "job.sbatch")], tmp_path, SLURM_SUBMIT_DIR=str(elsewhere))
    assert done.returncode == 2
    assert "PLAN_DIR" in done.stderr


def test_slurm_header_asks_for_whole_nodes() -> None:
    lines = launch_files(SPEC, "slurm").files["job.sbatch"].splitlines()
    header = {line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH ")}
    assert {"nodes=4", "ntasks-per-node=1", "gpus-per-node=8", "exclusive", "distribution=block"} <= header


def test_a_plan_fills_whole_nodes() -> None:
    plan = make_plan(Strategy(dp_shard=16), cluster=make_cluster(32))
    spec = launch_spec(plan, "train.sh", {})
    assert (spec.num_nodes, spec.devices_per_node, spec.world_size) == (2, 8, 16)
    assert spec.job_name == f"small-llama-{plan.plan_id[:8]}"
    small = launch_spec(make_plan(Strategy(dp_shard=4), cluster=make_cluster(8)), "train.sh", {})
    assert (small.num_nodes, small.devices_per_node) == (1, 4)


def test_part_of_a_node_beside_whole_ones_is_refused() -> None:
    with pytest.raises(BackEndRefused, match="12 ranks are not a whole number of nodes of 8"):
        launch_spec(make_plan(Strategy(dp_shard=12), cluster=make_cluster(16)), "train.sh", {})


def test_unlike_nodes_are_refused() -> None:
    cluster = make_cluster(8)
    other = make_cluster(4, devices_per_node=4).pools[0].model_copy(update={"name": "small"})
    mixed = cluster.model_copy(update={"pools": (*cluster.pools, other)})
    with pytest.raises(BackEndRefused, match="8 ranks do not fill the 12 devices of 2 pools"):
        launch_spec(make_plan(Strategy(dp_shard=8), cluster=mixed), "train.sh", {})


def test_an_unknown_launcher_is_named() -> None:
    with pytest.raises(NotFound, match="'lsf'"):
        launch_files(SPEC, "lsf")  # type: ignore[arg-type]


def test_a_script_without_sizes_is_invalid() -> None:
    with pytest.raises(DocumentInvalid, match="does not say how many ranks"):
        read_world_size("echo hello")


def test_environment_values_are_quoted() -> None:
    text = launch_files(SPEC, "torchrun").files["launch.sh"]
    assert f"export QUOTED={shlex.quote(SPEC.environment['QUOTED'])}" in text
