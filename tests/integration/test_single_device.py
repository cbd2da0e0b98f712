"""The benchmark of one device runs to its end: the same code on the CPU, with tiny models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

ROOT = Path(__file__).parents[2]


def test_a_tiny_run_on_the_cpu_writes_predictions_beside_measurements(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    command = [sys.executable, "-m", "benchmarks.single_device", "--device", "cpu", "--tiny", "--steps", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--out", str(out)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["provenance"]["comparable"] is False
    assert document["provenance"]["torch"]
    assert [row["case"]["recompute"] for row in document["rows"]] == ["none", "selective", "full"]
    for row in document["rows"]:
        measured = row["measured"]
        assert 0 < measured["fastest_s"] <= measured["step_time_s"] <= measured["slowest_s"]
        assert measured["allocated_bytes"] is None
        assert {"unrestricted", "torchtitan"} == set(row["predicted"])
    kept = [row["predicted"]["unrestricted"]["memory"]["activations"] for row in document["rows"]]
    assert kept[0] > kept[1] > kept[2]
    page = out.with_suffix(".md").read_text(encoding="utf-8")
    assert "Not a measurement of a GPU" in page
    assert page.count("| 64 x 2 |") == 3
