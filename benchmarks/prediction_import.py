"""The time to import a system's measured tables, and the time to the first plan with them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.child import run_meshwright
from benchmarks.measurement import Measurement, Spec

SYSTEM, CLUSTER = "h100_sxm", "dgx-h100"
IMPORT_TARGET_S = 60.0
PLAN_TARGET_S = 5.0
QUESTION = (
    "plan", "--model", "llama-3.1-70b", "--cluster", CLUSTER, "--devices", "64", "--global-batch-size", "512",
    "--sequence-length", "8192", "-o", "json", "--quiet",
)  # fmt: skip


def import_tables(repeats: int) -> list[Measurement]:
    """``profile import aiconfigurator --system``, then a plan that builds the profile, then one that finds it."""
    imports, first, second = [], [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
            os.environ["MESHWRIGHT_PROFILES"] = folder
            try:
                words = ("profile", "import", "aiconfigurator", "--system", SYSTEM, "-o", "json", "--quiet")
                imports.append(run_meshwright(words, Path(folder) / "plans.sqlite"))
                first.append(run_meshwright(QUESTION, Path(folder) / "plans.sqlite"))
                second.append(run_meshwright(QUESTION, Path(folder) / "plans.sqlite"))
            finally:
                del os.environ["MESHWRIGHT_PROFILES"]
    for run in (*imports, *first, *second):
        if run.exit_code != 0:
            raise RuntimeError(run.stderr[-500:])
    lines = []
    for name, task, target_s, runs in (
        ("import-tables", f"profile import aiconfigurator --system {SYSTEM}", IMPORT_TARGET_S, imports),
        ("plan-measured-first", "plan 70B on 64 H100, building its profile first", PLAN_TARGET_S, first),
        ("plan-measured", "the same with the profile built", PLAN_TARGET_S, second),
    ):
        wall_s, cpu_s = tuple(run.wall_s for run in runs), tuple(run.cpu_s for run in runs)
        details = {"peak_bytes": max(run.peak_bytes for run in runs)}
        lines.append(Measurement(name, task, "s", target_s, wall_s, cpu_s, details=details))
    return lines


IMPORT_TABLES = Spec("import-tables", import_tables)
