"""Time and memory of importing the PyTorch traces of eight ranks, 100 MB in all.

The traces are a real one (``../shared/samples/torch/hta_nccl_data.json.gz``, two A100) with its events repeated up to
the size, rewritten as ranks 0 to 7 of one job; the command reads, merges and prints them without storing.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from pathlib import Path

from benchmarks.child import REPOSITORY, run_meshwright
from benchmarks.measurement import Measurement, Spec

SAMPLE = REPOSITORY.parent / "shared" / "samples" / "torch" / "hta_nccl_data.json.gz"
NUM_RANKS = 8
TOTAL_BYTES = 100_000_000
TARGET_S = 10.0
MOST_MEMORY_BYTES = 1e9
_IDENTITY = re.compile(r'"(External id|correlation|id)": (\d+)')


def kineto_import(repeats: int) -> list[Measurement]:
    """Time and peak memory of the whole command.  Raises RuntimeError when it fails or the sample is absent."""
    if not SAMPLE.exists():
        raise RuntimeError(f"{SAMPLE} is not here")
    with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
        files = write_ranks(Path(folder))
        words = ["profile", "import", *map(str, files), "--format", "kineto", "--dry-run", "--quiet", "-o", "json"]
        runs = [run_meshwright(words, Path(folder) / "plans.db") for _ in range(repeats)]
    failed = next((run for run in runs if run.exit_code != 0), None)
    if failed is not None:
        raise RuntimeError(f"meshwright profile import: exit code {failed.exit_code}\n{failed.stderr}")
    task = f"import PyTorch traces of {NUM_RANKS} ranks, {TOTAL_BYTES // 10**6} MB"
    wall_s, cpu_s = tuple(run.wall_s for run in runs), tuple(run.cpu_s for run in runs)
    peak = tuple(float(run.peak_bytes) for run in runs)
    return [
        Measurement("kineto-import", task, "s", TARGET_S, wall_s, cpu_s),
        Measurement("kineto-import.memory", f"peak memory, {task}", "bytes", MOST_MEMORY_BYTES, peak),
    ]


def write_ranks(folder: Path) -> list[Path]:
    """The traces of all ranks, together at least ``TOTAL_BYTES``."""
    text = gzip.decompress(SAMPLE.read_bytes()).decode()
    start = text.index('"traceEvents": [') + len('"traceEvents": [')
    end = text.rindex("\n  ],")
    head, events, tail = text[:start], text[start:end], text[end:]
    missing = max(TOTAL_BYTES // NUM_RANKS - len(text), 0)
    more = events[: events.rfind("\n  },", 0, missing) + len("\n  },")] if missing else ""
    # The repeated part is a second later, under identities of its own.
    more = more.replace('"ts": 4458676', '"ts": 4459676')
    more = _IDENTITY.sub(lambda found: f'"{found[1]}": {int(found[2]) + 10_000_000}', more)
    ranks = str(list(range(NUM_RANKS)))
    body = (more + events).replace('"Group size": 2', f'"Group size": {NUM_RANKS}')
    body = body.replace('"Process Group Ranks": "[0, 1]"', f'"Process Group Ranks": "{ranks}"')
    files = []
    for rank in range(NUM_RANKS):
        job = head.replace('"rank": 0, "world_size": 2', f'"rank": {rank}, "world_size": {NUM_RANKS}')
        path = folder / f"rank{rank}.json"
        path.write_text(job + body + tail)
        files.append(path)
    return files


KINETO_IMPORT = Spec("kineto-import", kineto_import)
