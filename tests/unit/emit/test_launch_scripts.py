"""Shell scripts of the launchers, run by bash with stand-ins for the programs that only a cluster has."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from planner.backends.launch.launchers import launch_files
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.spec import LaunchSpec
from planner.errors import BackEndRefused
from tests.launch_folders import write_launch

SPEC = LaunchSpec("job-1", 2, 4, "train.sh", ("two words",), {"NCCL_X": "a'b $HOME"})
HOSTS = replace(SPEC, settings=LaunchSettings(hosts=("n10", "n2.example.com")))


def program(directory: Path, name: str, body: str) -> None:
    path = directory / name
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run(path: Path, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    full = {"PATH": f"{path}:{os.environ['PATH']}", **environ}
    return subprocess.run(["bash", str(path / script)], env=full, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("here", "rank"), [("n10", "0"), ("n2", "1"), ("n2.example.com", "1")])
def test_a_node_finds_its_rank_in_the_table(tmp_path: Path, here: str, rank: str) -> None:
    write_launch(tmp_path, HOSTS, "torchrun")
    program(tmp_path, "hostname", f"echo {here}")
    program(tmp_path, "torchrun", 'echo "$@"')
    words = run(tmp_path, "launch.sh").stdout.split()
    assert f"--node-rank={rank}" in words
    assert "--master-addr=n10" in words


def test_a_node_that_is_not_in_the_table_stops(tmp_path: Path) -> None:
    write_launch(tmp_path, HOSTS, "torchrun")
    program(tmp_path, "hostname", "echo elsewhere")
    done = run(tmp_path, "launch.sh")
    assert done.returncode
    assert "NODE_RANK" in done.stderr


@pytest.mark.parametrize(("host", "status"), [("n2.example.com", 0), ("n10", 3)])
def test_slurm_verifies_that_tasks_are_where_the_list_has_them(tmp_path: Path, host: str, status: int) -> None:
    write_launch(tmp_path, HOSTS, "slurm")
    program(tmp_path, "torchrun", 'echo "$@"')
    program(
        tmp_path, "srun", f'while [ "${{1#--}}" != "$1" ]; do shift; done; SLURM_PROCID=1 SLURMD_NODENAME={host} "$@"'
    )
    done = run(tmp_path, "job.sbatch", SLURM_SUBMIT_DIR=str(tmp_path))
    assert done.returncode == status, done.stderr
    if status == 0:
        assert {"--node-rank=1", "--master-addr=n10"} <= set(done.stdout.split())
    else:
        assert "ranks would be out of order" in done.stderr


def test_slurm_asks_for_the_hosts_or_for_switches() -> None:
    assert "#SBATCH --nodelist=n10,n2.example.com\n" in launch_files(HOSTS, "slurm").files["job.sbatch"]
    few = replace(SPEC, settings=LaunchSettings(switches=2))
    assert "\n#SBATCH --switches=2\n" in launch_files(few, "slurm").files["job.sbatch"]
    both = replace(SPEC, settings=LaunchSettings(hosts=("a", "b"), switches=1))
    with pytest.raises(BackEndRefused, match="already fixes the nodes"):
        launch_files(both, "slurm")


@pytest.mark.parametrize(
    ("vendor", "line"), [("AMD", "--gpus-per-node=4"), ("Huawei", "--gres=npu:4"), ("AWS", "--gres=neuron:4")]
)
def test_slurm_asks_for_devices_by_the_vendors_name(vendor: str, line: str) -> None:
    text = launch_files(replace(SPEC, vendor=vendor), "slurm").files["job.sbatch"]  # type: ignore[arg-type]
    assert f"#SBATCH {line}\n" in text


def test_mpirun_gets_every_variable_and_the_hosts_in_order(tmp_path: Path) -> None:
    write_launch(tmp_path, HOSTS, "mpirun")
    program(tmp_path, "mpirun", 'printf "%s\\n" "$@"; echo "$NCCL_X $MASTER_ADDR"')
    lines = run(tmp_path, "launch.sh").stdout.splitlines()
    exported = [word for flag, word in pairwise(lines) if flag == "-x"]
    assert exported == ["PATH", "MASTER_ADDR", "MASTER_PORT", "NCCL_X"]
    assert lines[-1] == "a'b $HOME n10"
    assert (tmp_path / "hostfile").read_text() == "n10 slots=4\nn2.example.com slots=4\n"


def test_mpirun_without_hosts_asks_for_a_file_and_counts_it(tmp_path: Path) -> None:
    write_launch(tmp_path, SPEC, "mpirun")
    program(tmp_path, "mpirun", 'echo "$MASTER_ADDR"')
    assert "set HOSTFILE" in run(tmp_path, "launch.sh").stderr
    (tmp_path / "mine").write_text("# rack 1\nn7 slots=4\n")
    assert "names 1 hosts, and the plan needs 2" in run(tmp_path, "launch.sh", HOSTFILE="mine").stderr
    (tmp_path / "mine").write_text("# rack 1\nn7 slots=4\n  n8 slots=4 # last\n")
    assert run(tmp_path, "launch.sh", HOSTFILE="mine").stdout == "n7\n"


def test_a_rank_of_mpirun_has_the_names_that_scripts_read(tmp_path: Path) -> None:
    write_launch(tmp_path, SPEC, "mpirun")
    program(tmp_path, "train.sh", 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $NODE_RANK $*"')
    names = {"RANK": "5", "LOCAL_RANK": "1", "SIZE": "8", "LOCAL_SIZE": "4"}
    environ = {f"OMPI_COMM_WORLD_{name}": value for name, value in names.items()}
    assert run(tmp_path, "rank.sh", **environ).stdout == "5 1 8 4 1 two words\n"


def test_slurm_binds_no_task_to_a_core_and_takes_a_container(tmp_path: Path) -> None:
    """One task a node starts all its ranks; words of the site come last, so that they win."""
    write_launch(tmp_path, SPEC, "slurm")
    program(tmp_path, "scontrol", "printf 'n1\\nn2\\n'")
    program(tmp_path, "srun", 'printf "%s\\n" "$@"')
    slurm = {"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"}
    plain = run(tmp_path, "job.sbatch", **slurm).stdout.splitlines()
    assert "--cpu-bind=none" in plain
    words = "--container-image=example.com/x:1 --cpu-bind=verbose,none"
    mine = run(tmp_path, "job.sbatch", **slurm, SRUN_ARGS=words).stdout.splitlines()
    assert [word for word in mine if word not in plain] == words.split()
    assert mine.index("--cpu-bind=none") < mine.index("--cpu-bind=verbose,none") < mine.index("bash")
