"""The time that ``meshwright accuracy`` takes for all published runs of training and of memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.child import REPOSITORY, run_meshwright
from benchmarks.measurement import Measurement, Spec

TARGET_S = 60.0
FILES = tuple(REPOSITORY.parent / "shared" / "ground_truth" / name for name in ("training_dev.csv", "oom_dev.csv"))


def published_runs(repeats: int) -> list[Measurement]:
    """Process start to exit.  Raises RuntimeError where the files are absent, or when the command fails."""
    if absent := [str(file) for file in FILES if not file.is_file()]:
        raise RuntimeError(f"measured runs are not here: {', '.join(absent)}")
    words = ["accuracy", *map(str, FILES), "--calibrate-fraction", "0.1", "-o", "json", "-q"]
    with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
        runs = [run_meshwright(words, Path(folder) / "plans.db") for _ in range(repeats)]
    failed = next((run for run in runs if run.exit_code != 0), None)
    if failed is not None:
        raise RuntimeError(f"meshwright accuracy: exit code {failed.exit_code}\n{failed.stderr}")
    wall_s, cpu_s = tuple(run.wall_s for run in runs), tuple(run.cpu_s for run in runs)
    task = "meshwright accuracy of all published runs, with calibrations"
    return [Measurement("accuracy", task, "s", TARGET_S, wall_s, cpu_s)]


PUBLISHED_RUNS = Spec("accuracy", published_runs)
