"""Sweeps on Ray, on real clusters of several nodes on this machine: the plans of one process, whatever dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.answers.sweep.errors import ExecutorUnavailable
from planner.answers.sweep.executor import executor
from planner.cli.failure import failure_of
from planner.store import open_store
from tests.command_line import REPOSITORY, Ran, command, run_process, shell_environment
from tests.measured_problems import random_profile
from tests.ray_clusters import RayCluster, ray_cluster, require_ray
from tests.sweep_cells import cells_of, small_question, tasks_of

pytestmark = pytest.mark.slow

AXES = (
    *("--model", "llama-3.2-1b,llama-3.1-70b", "--cluster", "dgx-h100", "--devices", "4,12,16"),
    *("--sequence-length", "1024,2048,4096", "--global-batch-size", "64,96", "--profile", "none"),
    # With another back-end the larger model fits on 4.
    *("--backend", "megatron"),
)
NUM_CELLS = 2 * 3 * 3 * 2
LONG_S = 400.0
MOST_STARTS = 5
WHO = ("wall_s", "worker", "source")
"""What may differ from run to run."""


Answered = tuple[list[dict[str, Any]], set[str]]
"""Cells, and the ids of the stored plans: the hashes of all their bytes."""


def assert_same(found: list[dict[str, Any]], plans: set[str], expected: Answered) -> None:
    """Field by field, so that a difference can be read."""
    pairs = zip(found, expected[0], strict=True)
    differ = [(index, name, a[name], b[name]) for index, (a, b) in enumerate(pairs) for name in a if a[name] != b[name]]
    assert differ == []
    assert plans == expected[1]


def words(database: Path, *more: str) -> tuple[str, ...]:
    return ("sweep", *AXES, "--database", f"sqlite:///{database}", "-o", "json", *more)


def cells(ran: Ran) -> list[dict[str, Any]]:
    """The cells of a finished sweep, without who and how long."""
    assert ran.exit_code == 0, ran.stderr
    data = ran.json()
    assert data["summary"]["failed"] == data["summary"]["missing"] == 0
    return [{name: value for name, value in cell.items() if name not in WHO} for cell in data["cells"]]


def run_connected(*asked: str, **how: Any) -> Ran:
    """Run a sweep; again where the 30 s that Ray has for starting and connecting were too short for a busy machine."""
    for _ in range(MOST_STARTS):
        ran = run_process(*asked, timeout_s=LONG_S, **how)
        if ran.exit_code != ExecutorUnavailable.exit_code:
            return ran
    return ran


def start_until_stored(database: Path, *asked: str) -> subprocess.Popen[bytes]:
    """A sweep that is running and has stored its first plan."""
    for _ in range(MOST_STARTS):
        process = subprocess.Popen(command(*asked), env=shell_environment(), stdout=subprocess.DEVNULL)
        while process.poll() is None:
            if stored(database):
                return process
            time.sleep(0.05)
    raise AssertionError("no sweep stored a plan")


def stored(database: Path) -> set[str]:
    if not database.exists():
        return set()
    with open_store(f"sqlite:///{database}") as store:
        return {record.plan_id for record in store.list_plans(limit=1000)}


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """What one process answers."""
    database = tmp_path_factory.mktemp("serial") / "plans.db"
    answered = cells(run_process(*words(database, "--executor", "serial"), timeout_s=LONG_S))
    assert len(answered) == NUM_CELLS
    assert {cell["outcome"] for cell in answered} == {"planned", "infeasible", "refused"}
    return answered, stored(database)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Three nodes of one CPU."""
    require_ray()
    with ray_cluster(3) as running:
        yield running


@pytest.mark.budget(20)
def test_a_ray_of_our_own_answers_as_one_process(serial: Answered, tmp_path: Path) -> None:
    require_ray()
    database = tmp_path / "plans.db"
    asked = words(database, "--executor", "ray", "--workers", "2")
    ran = run_connected(*asked, environment={"RAY_ADDRESS": ""})
    assert_same(cells(ran), stored(database), serial)


def test_a_node_that_is_killed_in_the_middle_costs_no_cell(
    cluster: RayCluster, serial: Answered, tmp_path: Path
) -> None:
    database = tmp_path / "plans.db"
    process = subprocess.Popen(
        command(*words(database, "--executor", "ray")),
        env=shell_environment({"RAY_ADDRESS": cluster.address}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    killed = cluster.kill_busy()
    stdout, stderr = process.communicate(timeout=LONG_S)
    ran = Ran(process.returncode, stdout, stderr)
    assert_same(cells(ran), stored(database), serial)
    workers = {cell["worker"] for cell in ran.json()["cells"] if cell["worker"]}
    assert killed in cluster.nodes
    assert workers - {f"node {killed}"}


def test_when_the_driver_is_killed_the_next_sweep_goes_on(
    cluster: RayCluster, serial: Answered, tmp_path: Path
) -> None:
    database = tmp_path / "plans.db"
    asked = words(database, "--executor", cluster.client)
    process = start_until_stored(database, *asked)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = stored(database)
    ran = run_connected(*asked)
    assert_same(cells(ran), stored(database), serial)
    assert ran.json()["summary"]["stored"] >= len(before) >= 1


def test_measurements_travel_to_nodes_that_do_not_have_them(cluster: RayCluster, tmp_path: Path) -> None:
    (cell,) = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,)))
    assert cell.problem is not None
    measured = random_profile(cell.problem, seed=3)
    asked = (
        *(
            "sweep",
            "--model",
            "llama-3.2-1b",
            "--cluster",
            "dgx-h100",
            "--devices",
            "8,16",
            "--sequence-length",
            "2048",
        ),
        *("--global-batch-size", "64", "--profile", measured.profile_id, "-o", "json", "--database"),
    )
    here = cells(run_process(*asked, f"sqlite:///{tmp_path / 'here.db'}", "--executor", "serial", timeout_s=LONG_S))
    there = run_connected(*asked, f"sqlite:///{tmp_path / 'there.db'}", "--executor", cluster.client)
    assert_same(cells(there), stored(tmp_path / "there.db"), (here, stored(tmp_path / "here.db")))
    assert [one["outcome"] for one in here] == ["planned", "planned"]


def test_workers_with_other_software_are_refused_and_can_be_sent_ours(tmp_path: Path) -> None:
    require_ray()
    sources, home = tmp_path / "sources", tmp_path / "home"
    home.mkdir()
    for name in ("planner", "profiles", "solver"):
        shutil.copytree(REPOSITORY / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    changed = sources / "planner" / "plan" / "plan.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n# Another release.\n", encoding="utf-8")
    with ray_cluster(1, sources) as other:
        asked = words(home / "plans.db", "--executor", other.client)
        refused = run_connected(*asked, cwd=home)
        assert refused.exit_code == 4, refused.stderr
        assert refused.error()["slug"] == "conflict"
        assert "runs Meshwright" in refused.error()["what"]
        assert "--ray-code" in refused.error()["hint"]
        assert stored(home / "plans.db") == set()
        sent = run_connected(*asked, "--ray-code", str(REPOSITORY), cwd=home)
        assert len(cells(sent)) == NUM_CELLS
        assert sent.json()["summary"]["stored"] == 0
        (sources / "planner" / "__init__.py").write_text("raise ImportError('half installed')\n", encoding="utf-8")
        broken = run_connected(*words(home / "other.db", "--executor", other.client), cwd=home)
        assert broken.exit_code == 4, broken.stderr
        assert "cannot be imported" in broken.error()["what"]
        assert "half installed" in broken.error()["what"]


def test_an_address_where_nobody_answers_is_one_clear_error(tmp_path: Path) -> None:
    require_ray()
    database = tmp_path / "plans.db"
    ran = run_process(*words(database, "--executor", "ray://127.0.0.1:9"), timeout_s=LONG_S)
    assert ran.exit_code == 3
    assert ran.error()["slug"] == "executor-unavailable"
    assert "127.0.0.1:9" in ran.error()["what"]
    assert "Traceback" not in ran.stderr
    assert ran.json()["summary"]["missing"] == NUM_CELLS - ran.json()["summary"]["refused"]


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # What an import finds where the package is not installed.
    monkeypatch.setitem(sys.modules, "ray", None)
    tasks = tasks_of(cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,))))
    with pytest.raises(ExecutorUnavailable) as raised:
        next(executor("ray").run(tasks))
    failure = failure_of(raised.value)
    assert failure.exit_code == 3
    assert "meshwright[ray]" in (failure.hint or "")


def test_a_folder_without_the_sources_is_refused(tmp_path: Path) -> None:
    ran = run_process(*words(tmp_path / "plans.db", "--executor", "ray", "--ray-code", str(tmp_path)))
    assert ran.exit_code == 2
    assert "no planner, profiles, solver in this folder" in ran.error()["what"]
    assert not os.path.exists(tmp_path / "plans.db")
