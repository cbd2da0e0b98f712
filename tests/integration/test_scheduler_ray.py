"""The Ray example on a real Ray cluster of two nodes on this machine, against a real service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.backends.checking.environment import overlay
from planner.backends.emission.write import changed_files, read_manifest
from planner.backends.folders.catalogue import validator
from tests.board_in_memory import MemoryBoard
from tests.command_line import REPOSITORY
from tests.listening_service import listening
from tests.scheduler_examples import environment, run_script, small_question
from tests.validators import worker_or_skip

DRIVER = "ray/plan_and_place.py"


@pytest.fixture(scope="module")
def with_ray() -> dict[str, str]:
    """The environment of processes that can import Ray, which is not in ours."""
    worker_or_skip("ray")
    found = validator("ray")
    path = os.pathsep.join([str(REPOSITORY), str(overlay(found, found.default_version))])
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "OMP_NUM_THREADS": "1"}
    return {"PYTHONPATH": path, **quiet}


@pytest.fixture(scope="module")
def cluster(with_ray: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("ray") / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.ray_cluster"], cwd=REPOSITORY,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written, text=True, env=environment("", with_ray),
        )  # fmt: skip
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, log.read_text()
        yield address
        process.communicate("")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    database = f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"
    with listening(database, MemoryBoard(database)) as found:
        yield found


@pytest.mark.slow
def test_it_reserves_the_nodes_that_the_plan_is_for(
    cluster: str, address: str, with_ray: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "question.json"
    file.write_text(json.dumps(small_question()), encoding="utf-8")
    extra = {**with_ray, "RAY_ADDRESS": cluster}
    words = (str(file), "--out", str(tmp_path / "plan"), "--reserve", "--budget", "60")
    ran = run_script(DRIVER, *words, address=address, extra=extra)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("{")))
    assert said["nodes"] in {1, 2}
    assert said["devices_per_node"] == 8
    assert said["bundles"] == [{"CPU": 1.0, "GPU": 8.0}] * said["nodes"]
    manifest = read_manifest(tmp_path / "plan")
    assert changed_files(tmp_path / "plan", manifest) == ()
    assert (manifest["launcher"], manifest["plan_id"]) == ("ray", said["plan_id"])
    job = json.loads((tmp_path / "plan" / "launch.json").read_text())
    assert (job["num_nodes"], job["devices_per_node"]) == (said["nodes"], 8)
    # The nodes are free again, and what they do not have is one error.
    none = run_script(DRIVER, *words, "--resource", "NPU", address=address, extra=extra)
    assert none.returncode == 2
    assert "no node of this Ray cluster has NPU" in none.stderr
    assert "Traceback" not in none.stderr
