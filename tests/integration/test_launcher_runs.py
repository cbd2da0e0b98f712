"""Ranks that really start: mpirun, the Ray driver and Ray Train, each with two ranks that sum over gloo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from planner.backends.checking.environment import overlay
from planner.backends.folders.catalogue import validator
from planner.backends.launch import LauncherName
from planner.backends.launch.spec import LaunchSpec
from tests.launch_folders import write_launch
from tests.validators import worker_or_skip

pytest.importorskip("torch")

SCRIPT = Path(__file__).parents[1] / "launched_all_reduce.py"
RANKS = {
    f"SUMMED 1 RANK={rank} LOCAL_RANK={rank} WORLD_SIZE=2 CUDA_DEVICE_MAX_CONNECTIONS=1 two words" for rank in (0, 1)
}
LOCAL_RAY = """
import runpy, sys
import ray
start = ray.init
ray.init = lambda **given: start("local", num_cpus=4, num_gpus=2, include_dashboard=False, **given)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def spec() -> LaunchSpec:
    files = {"all_reduce.py": SCRIPT.read_text(encoding="utf-8")}
    variables = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    return LaunchSpec("two-ranks", 1, 2, "all_reduce.py", ("two words",), variables, files=files)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def installed(name: str) -> Path:
    worker_or_skip(name).close()
    return overlay(validator(name), validator(name).default_version)


@pytest.mark.slow
def test_mpirun_starts_ranks_that_sum(tmp_path: Path) -> None:
    folder = installed("mpirun")
    write_launch(tmp_path, spec(), "mpirun")
    libraries = next((folder / "usr/lib").glob("*-linux-gnu*"))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MPIRUN": str(folder / "usr/bin/orterun"),
        "MASTER_PORT": free_port(),
        "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'openmpi/lib'}:{folder / 'lib' / libraries.name}",
        "OPAL_PREFIX": str(folder / "usr"),
        "OPAL_LIBDIR": str(libraries),
        "OPAL_PKGLIBDIR": str(libraries / "openmpi/lib/openmpi3"),
        "OPAL_PKGDATADIR": str(folder / "usr/share/openmpi"),
        "OPAL_SYSCONFDIR": str(folder / "etc/openmpi"),
        "OMPI_MCA_plm_rsh_agent": "/bin/true",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    command = ["bash", str(tmp_path / "launch.sh")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == RANKS


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "driver"), [("ray", "ray_driver.py"), ("ray-train", "ray_train.py")])
def test_ray_starts_ranks_that_sum(tmp_path: Path, launcher: LauncherName, driver: str) -> None:
    """Two GPUs that exist only in Ray's books."""
    folder = installed("ray")
    write_launch(tmp_path, spec(), launcher)
    (tmp_path / "local_ray.py").write_text(LOCAL_RAY)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "HOME": str(tmp_path),
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TRAIN_STORAGE": str(tmp_path / "results"),
    }
    command = [sys.executable, "local_ray.py", driver]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    said = done.stdout + done.stderr
    assert all(line in said for line in RANKS), said[-2000:]
