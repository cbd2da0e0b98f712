"""How long does ``meshwright --help`` take?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.child import run_meshwright
from benchmarks.measurement import Measurement, Spec

TARGET_S = 0.3


def help_page(repeats: int) -> list[Measurement]:
    """Process start to exit.  Raises RuntimeError when the command fails."""
    with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
        runs = [run_meshwright(["--help"], Path(folder) / "plans.db") for _ in range(repeats)]
    failed = next((run for run in runs if run.exit_code != 0), None)
    if failed is not None:
        raise RuntimeError(f"meshwright --help: exit code {failed.exit_code}\n{failed.stderr}")
    wall_s, cpu_s = tuple(run.wall_s for run in runs), tuple(run.cpu_s for run in runs)
    return [Measurement("help", "meshwright --help", "s", TARGET_S, wall_s, cpu_s)]


HELP_PAGE = Spec("help", help_page)
