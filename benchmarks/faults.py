"""Runs every fault that operators meet, on both databases, and tells what became of the jobs that were promised.

    python -m benchmarks.faults [--fault NAME ...] [--database sqlite|postgresql ...] [--write]

Each fault is in a file ``faults_*.py``; ``tests/faults`` runs the same, shorter, and judges the figures.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from benchmarks.faults_clock import service_clock_jumps, worker_clock_jumps
from benchmarks.faults_database import crash_restarts, database_away
from benchmarks.faults_disk import full_disk, read_only_file
from benchmarks.faults_queue import equal_keys, queue_full
from benchmarks.faults_service import restarts_under_a_watcher, rolling_restart
from benchmarks.faults_workers import measure
from benchmarks.job_report import write_report

Figures = dict[str, Any]
BOTH: dict[str, Callable[[str], Figures]] = {
    "kill": lambda kind: measure(kind, "kill", 100),
    "stop": lambda kind: measure(kind, "stop", 20),
    "worker-clock": worker_clock_jumps,
    "service-clock": service_clock_jumps,
    "watcher": restarts_under_a_watcher,
    "queue-full": queue_full,
    "equal-keys": equal_keys,
}
POSTGRESQL: dict[str, Callable[[], Figures]] = {
    "crash": crash_restarts,
    "away": database_away,
    "rolling": rolling_restart,
}
SQLITE: dict[str, Callable[[], Figures]] = {"disk-full": full_disk, "read-only": read_only_file}


def run(name: str, kind: str) -> Figures | None:
    """The figures of one fault on one kind of database; None where it does not exist there."""
    if name in BOTH:
        figures = BOTH[name](kind)
    else:
        alone = (SQLITE if kind == "sqlite" else POSTGRESQL).get(name)
        if alone is None:
            return None
        figures = alone()
    return {"name": name, **figures, "load": os.getloadavg()[0]}


def main() -> None:
    """Run and print; with ``--write`` keep each figure as soon as it is known."""
    names = [*BOTH, *POSTGRESQL, *SQLITE]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description="Faults of the whole service.")
    parser.add_argument("--database", action="append", choices=["sqlite", "postgresql"])
    parser.add_argument("--fault", action="append", choices=names)
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results")
    chosen = parser.parse_args()
    for name in chosen.fault or names:
        for kind in chosen.database or ["sqlite", "postgresql"]:
            figures = run(name, kind)
            if figures is None:
                continue
            print(json.dumps(figures, indent=2), flush=True)
            if chosen.write:
                write_report("faults", [figures])


if __name__ == "__main__":
    main()
