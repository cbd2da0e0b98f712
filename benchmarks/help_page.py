"""The time that ``meshwright --help`` and ``--version`` take."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.child import run_meshwright
from benchmarks.measurement import Measurement, Spec

TARGET_S = 0.2


def help_page(repeats: int) -> list[Measurement]:
    """Process start to exit.  Raises RuntimeError when the command fails."""
    return [_flag(name, repeats) for name in ("help", "version")]


def _flag(name: str, repeats: int) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
        runs = [run_meshwright([f"--{name}"], Path(folder) / "plans.db") for _ in range(repeats)]
    failed = next((run for run in runs if run.exit_code != 0), None)
    if failed is not None:
        raise RuntimeError(f"meshwright --{name}: exit code {failed.exit_code}\n{failed.stderr}")
    wall_s, cpu_s = tuple(run.wall_s for run in runs), tuple(run.cpu_s for run in runs)
    return Measurement(name, f"meshwright --{name}", "s", TARGET_S, wall_s, cpu_s)


HELP_PAGE = Spec("help", help_page)
