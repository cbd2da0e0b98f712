"""The time to store 12 million measured rows, and to find a part of them.

Synthetic rows with the distributions of a large public table: a dozen operators, a few dtypes, shapes that repeat, one
time each.  Each step runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from benchmarks.child import REPOSITORY
from benchmarks.measurement import Measurement, Spec

NUM_ROWS = 12_000_000
IMPORT_TARGET_S = 60.0
QUERY_TARGET_S = 1.0
MOST_MEMORY_BYTES = 4e9

_MAKE = """
import sys, time, json, resource
from pathlib import Path
import numpy as np
import pyarrow as pa
from profiles.importing.imported import Batch, Imported
from profiles.observation_store.store import ObservationStore
from profiles.observations.environment import Environment
from profiles.observations.source import Source

folder, rows = Path(sys.argv[1]), int(sys.argv[2])
dice = np.random.default_rng(0)
operators = pa.array([f"operator-{each}" for each in range(12)])
dtypes = pa.array(["bf16", "fp8", "fp8_block", "int4"])
which = np.sort(dice.integers(0, len(operators), rows)).astype(np.int32)
def size(most):
    return pa.array(2 ** dice.integers(0, most, rows), pa.int64())
table = pa.table({
    "operator": pa.DictionaryArray.from_arrays(pa.array(which), operators),
    "name": pa.DictionaryArray.from_arrays(pa.array(which), operators),
    "dtype": pa.DictionaryArray.from_arrays(pa.array(dice.integers(0, 4, rows).astype(np.int32)), dtypes),
    "time_s": pa.array(dice.lognormal(-9, 2, rows)),
    "m": size(18), "n": size(15), "k": size(15), "batch_size": size(9), "num_heads": size(7), "head_dim": size(9),
})
source = Source(kind="imported", format="synthetic", file_sha256="0" * 64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
start = time.perf_counter(), time.process_time()
imported = Imported("benchmark", batches=[Batch(Environment(device="h100-sxm5-80gb"), operator_table=table)])
ObservationStore(folder).add(imported, source)
print(json.dumps({
    "wall_s": time.perf_counter() - start[0],
    "cpu_s": time.process_time() - start[1],
    "table_bytes": before,
    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "stored_bytes": sum(path.stat().st_size for path in folder.rglob("*.parquet")),
}))
"""

_QUERY = """
import sys, time, json, resource
from pathlib import Path
from profiles.observation_store.query import Selection, select
from profiles.observation_store.store import ObservationStore

wanted = Selection(devices=("h100-sxm5-80gb",), operator=("operator-7",), dtype=("fp8",))
start = time.perf_counter(), time.process_time()
rows = select(ObservationStore(Path(sys.argv[1])), "operators", wanted, ["m", "n", "k", "time_s"])
print(json.dumps({
    "wall_s": time.perf_counter() - start[0],
    "cpu_s": time.process_time() - start[1],
    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "rows": rows.num_rows,
}))
"""


@dataclass(frozen=True, slots=True)
class _Runs:
    """What the child processes said."""

    stored: list[dict[str, Any]]
    found: list[dict[str, Any]]


def profile_store(repeats: int) -> list[Measurement]:
    """Storing and a filtered query, wall time and peak memory.  Raises RuntimeError when a step fails."""
    runs = _Runs([], [])
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
            runs.stored.append(_child(_MAKE, folder, str(NUM_ROWS)))
            runs.found.append(_child(_QUERY, folder))
    rows = f"{NUM_ROWS // 1_000_000} million rows"
    part = f"{runs.found[-1]['rows']:,} of them by device, operator and dtype"
    return [
        _time("profile-import", f"store {rows} of operators", IMPORT_TARGET_S, runs.stored),
        _memory("profile-import.memory", f"peak memory, store {rows} (their own table included)", runs.stored),
        _time("profile-query", f"find {part}, cold process", QUERY_TARGET_S, runs.found),
        _memory("profile-query.memory", "peak memory, that query", runs.found),
    ]


def _time(name: str, title: str, target_s: float, runs: list[dict[str, Any]]) -> Measurement:
    wall_s, cpu_s = tuple(run["wall_s"] for run in runs), tuple(run["cpu_s"] for run in runs)
    return Measurement(name, title, "s", target_s, wall_s, cpu_s, details=runs[-1])


def _memory(name: str, title: str, runs: list[dict[str, Any]]) -> Measurement:
    return Measurement(name, title, "bytes", MOST_MEMORY_BYTES, tuple(float(run["peak_bytes"]) for run in runs))


def _child(code: str, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"a step of the profile store failed: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


PROFILE_STORE = Spec("profile-store", profile_store)
