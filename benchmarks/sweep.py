"""The cells a second that a sweep plans, for each way of running them.

    python -m benchmarks.sweep [--workers 2] [--repeats 1] [--write]

The same grid of ordinary questions goes through one process, processes of this machine and a Ray started for it, each
into a database of its own, checked and stored as ``meshwright sweep`` does.  All must store the same plans.  The time
to the first answer holds what starting costs; the rate after it is what a long sweep sees.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from typing import Any

# Before NumPy is imported, which reads it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.job_report import write_report
from planner.answers.sweep.executor import executor
from planner.answers.sweep.grid import Cell, Sources, grid
from planner.answers.sweep.question import SweepQuestion
from planner.answers.sweep.walk import answers
from planner.model.load import load_model
from planner.search.options import SearchOptions
from planner.store import open_store
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster

EXECUTORS = ("serial", "processes", "ray")
QUESTION = SweepQuestion(
    models=("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b"),
    clusters=("dgx-h100", "dgx-a100-80g"),
    device_counts=(16, 32, 64, 128),
    sequence_lengths=(2048, 4096, 8192),
    global_batch_sizes=(256,),
)


def run(name: str, cells: tuple[Cell, ...], workers: int) -> tuple[dict[str, Any], frozenset[str]]:
    """Figures of one sweep, and the ids of the plans that it stored."""
    with tempfile.TemporaryDirectory(prefix="mwsweep") as folder, open_store(f"sqlite:///{folder}/plans.db") as store:
        start_s = time.perf_counter()
        first_s, count = 0.0, 0
        for _ in answers(cells, SearchOptions(), store, executor(name, workers)):
            count += 1
            first_s = first_s or time.perf_counter() - start_s
        wall_s = time.perf_counter() - start_s
        plans = frozenset(record.plan_id for record in store.list_plans(limit=1000))
    figures = {
        "executor": name,
        "workers": 1 if name == "serial" else workers,
        "cells": count,
        "plans": len(plans),
        "wall_s": round(wall_s, 3),
        "first_answer_s": round(first_s, 3),
        "cells_per_s": round(count / wall_s, 2),
        "cells_per_s_after_first": round((count - 1) / (wall_s - first_s), 2),
    }
    return figures, plans


def main() -> int:
    """Run every executor; prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description="Cells a second, by executor.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1, help="the quickest of so many is shown")
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results")
    chosen = parser.parse_args()
    cells = grid(QUESTION, Sources(load_model, load_cluster, scale_cluster, lambda _device: None))
    rows: list[dict[str, Any]] = []
    stored: set[frozenset[str]] = set()
    for name in EXECUTORS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        runs = [run(name, cells, chosen.workers) for _ in range(chosen.repeats)]
        stored |= {plans for _, plans in runs}
        rows.append(min((figures for figures, _ in runs), key=lambda figures: figures["wall_s"]))
    print("| executor | workers | cells | plans | seconds | first answer after | cells/s | cells/s after the first |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")
    same = len(stored) == 1
    print("\nall stored the same plans" if same else "\nTHE PLANS DIFFER")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if chosen.write:
        write_report("sweep", [*rows, {"same_plans": same}])
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
