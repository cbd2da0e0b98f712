"""A whole profile of this machine's CPU: measured, budgeted, killed, resumed, stored."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")

from profiles.importing.imported import Imported
from profiles.measure.measured_file import document_of
from profiles.measure.operators import KINDS
from profiles.measure.plan import MeasurePlan
from profiles.measure.protocol import Protocol
from profiles.measure.resume import Journal
from profiles.measure.run import measure_device
from tests.command_line import shell_environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
QUICK = Protocol(stable_within=0.5, longest_warm_up_s=0.02, min_repeats=5, fewest_samples=3)


def quick_plan(**switches: object) -> MeasurePlan:
    plan: dict[str, object] = {"grid": "small", "backend": "cpu", "flush_bytes": 1 << 20, "protocol": QUICK}
    return MeasurePlan(**(plan | switches))  # type: ignore[arg-type]  # the fields vary by test


@pytest.fixture(scope="module")
def measured() -> Imported:
    return measure_device(quick_plan(dtypes=("bf16", "fp8")))


def test_every_kind_is_measured(measured: Imported) -> None:
    (batch,) = measured.batches
    assert {row.operator for row in batch.operators} == set(KINDS) - {"copy"}
    assert {row.kind for row in batch.links} == {"host_memory"}
    assert all(row.bandwidth_bytes_per_s and row.bandwidth_bytes_per_s > 0 for row in batch.links)
    times = [row.timing for row in batch.operators if row.ok]
    assert len(times) == 57
    for timing in times:
        assert timing is not None
        assert timing.min_s is not None
        assert timing.max_s is not None
        assert 0 < timing.min_s <= timing.time_s <= timing.max_s < math.inf
        assert (timing.statistic, timing.num_samples) >= ("median", 3)


def test_every_phase_and_routing_is_there(measured: Imported) -> None:
    rows = [row for row in measured.batches[0].operators if row.ok]
    matmuls = Counter(row.phase for row in rows if row.operator == "matmul")
    assert matmuls == {"forward": 9, "dgrad": 9, "wgrad": 9}
    grouped = {(row.phase, row.detail["routing"]) for row in rows if row.operator == "grouped_matmul"}
    assert grouped == {(phase, how) for phase in ("forward", "dgrad", "wgrad") for how in ("balanced", "power_law")}
    for operator in ("attention", "router", "permute", "norm", "activation", "embedding", "cross_entropy"):
        assert {row.phase for row in rows if row.operator == operator} == {"forward", "backward"}


def test_failures_are_data(measured: Imported) -> None:
    failed = [row for row in measured.batches[0].operators if not row.ok]
    assert {(row.operator, row.phase, row.dtype) for row in failed} == {
        (operator, phase, "fp8") for operator in ("matmul", "grouped_matmul") for phase in ("forward", "dgrad", "wgrad")
    }
    assert all(row.timing is None and "fp8" in row.error for row in failed)
    assert measured.facts["num_failed"] == 6
    assert sum(measured.skipped.values()) == 26


def test_the_environment_says_where(measured: Imported) -> None:
    environment = measured.batches[0].environment
    assert environment.device_reported.startswith("cpu: ")
    assert (environment.device, environment.framework) == ("", "torch")
    assert environment.captured_at
    assert measured.facts["backend"] == "cpu"
    assert measured.facts["threads"]


def test_a_budget_leaves_the_rest_out_and_says_so() -> None:
    imported = measure_device(quick_plan(time_budget_s=1e-6))
    assert imported.num_observations == 0
    assert sum(imported.skipped.values()) == imported.facts["num_cases"] == 59
    assert all("time budget of 1e-06 s" in reason for reason in imported.skipped)
    assert [flag.code for flag in imported.flags] == ["left-out"]


def test_a_second_run_resumes_everything(tmp_path: Path) -> None:
    plan = quick_plan(only=("norm", "copy"))
    calls: list[tuple[int, int]] = []
    with Journal(tmp_path / "journal") as journal:
        first = measure_device(plan, lambda done, total: calls.append((done, total)), journal)
    with Journal(tmp_path / "journal") as journal:
        second = measure_device(plan, None, journal)
    assert calls[-1] == (6, 6)
    assert second.facts["num_resumed"] == 6
    assert document_of(second)["batches"][0]["operators"] == document_of(first)["batches"][0]["operators"]
    assert document_of(second)["batches"][0]["links"] == document_of(first)["batches"][0]["links"]


_KILLED = """
import sys
from pathlib import Path
from profiles.measure.plan import MeasurePlan
from profiles.measure.protocol import Protocol
from profiles.measure.resume import Journal
from profiles.measure.run import measure_device
careful = Protocol(stable_within=0.5, longest_warm_up_s=0.02, min_repeats=40)
only = ("norm", "activation", "embedding", "cross_entropy", "copy")
plan = MeasurePlan(grid="small", only=only, backend="cpu", flush_bytes=1 << 20, protocol=careful, block_size=2)
result = measure_device(plan, lambda done, total: print(done, flush=True), Journal(Path(sys.argv[1])))
print("resumed", result.facts["num_resumed"], result.num_observations, flush=True)
"""


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    command = [sys.executable, "-c", _KILLED, str(journal)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=shell_environment(None)) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 6:
            time.sleep(0)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    lines = [line for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
    assert 6 <= len(lines) < 14
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=shell_environment(None), check=True)
    assert done.stdout.splitlines()[-1] == f"resumed {len(lines)} 14"
    keys = [json.loads(line)["case"] for line in journal.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 14
