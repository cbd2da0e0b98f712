"""Measures the speed of Meshwright beside its targets: ``python -m benchmarks``.

``--only NAME`` (repeatable) chooses, ``--repeats N`` sets the samples of each (default 5), ``--write`` appends the
figures to ``benchmarks/results/<date>.json``.  Reports; never fails because of a time.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Before NumPy is imported, which reads it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.child import REPOSITORY
from benchmarks.machine import machine_facts, use_one_core
from benchmarks.registry import SPECS
from benchmarks.table import machine_line, markdown_table

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("api", "meshwright", "planner", "profiles", "solver")


def main() -> int:
    """Run the chosen benchmarks; prints a table, writes JSON when asked."""
    chosen = _arguments()
    compile_sources()
    core = use_one_core()
    facts = machine_facts(core)
    measurements = []
    failed: list[str] = []
    for spec in SPECS:
        if chosen.only and spec.name not in chosen.only:
            continue
        print(f"measuring {spec.name} ...", file=sys.stderr, flush=True)
        try:
            measurements += spec.run(chosen.repeats)
        except RuntimeError as error:
            failed.append(f"{spec.name} could not be measured: {error}")
    print(markdown_table(measurements))
    print(f"\n{machine_line(facts)}")
    for line in failed:
        print(line, file=sys.stderr)
    if chosen.write and measurements:
        data = {"machine": facts, "measurements": [each.as_data() for each in measurements]}
        print(f"written: {_write(data)}", file=sys.stderr)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measured figures beside their targets.")
    parser.add_argument("--only", action="append", choices=[spec.name for spec in SPECS], help="one benchmark")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/<date>.json")
    return parser.parse_args()


def compile_sources() -> None:
    """Compiled Python beside the sources, as an installation has it: the first repeat is like the others."""
    for package in PACKAGES:
        compileall.compile_dir(str(REPOSITORY / package), quiet=1)


def _write(run: dict[str, Any]) -> Path:
    """Append this run to the runs of the day; an earlier run keeps its own machine and software."""
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y-%m-%d}.json"
    RESULTS.mkdir(exist_ok=True)
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    runs.append({"measured_at": now.isoformat(timespec="seconds"), **run})
    path.write_text(json.dumps({"runs": runs}, indent=2) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
