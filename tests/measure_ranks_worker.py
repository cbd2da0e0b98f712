"""Measure collectives on the ranks of one torchrun launch; rank 0 writes the result.

torchrun --nproc-per-node=4 measure_ranks_worker.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch

from profiles.measure.collective_plan import CollectivePlan
from profiles.measure.collectives import measure_collectives
from profiles.measure.measured_file import document_text
from profiles.measure.ranks import Ranks, all_ranks, quiet_rank
from profiles.measure.resume import Journal

PLAN = CollectivePlan(
    sizes=(4096, 65536),
    dtypes=("bf16", "fp32"),
    backend="cpu",
    devices_per_node=2,
    overlap_bytes=65536,
    overlap_matmul=64,
    warm_ups=1,
    repeats=3,
    fewest_repeats=2,
    sample_s=1e-3,
    min_time_s=2e-3,
    blocking_up_to_bytes=4096,
)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    with all_ranks("cpu", 2) as ranks:
        check_agreement(ranks, folder)
    path = None if quiet_rank() else folder / "journal"
    for name in ("first", "second"):
        # The second run finds every collective in the journal, on rank 0 only.
        with Journal(path) as journal:
            result = measure_collectives(PLAN, None, journal)
        if result is not None:
            (folder / f"{name}.json").write_text(document_text(result), encoding="utf-8")
        else:
            (folder / f"{name}.none.{os.environ['RANK']}").touch()
    torch.distributed.destroy_process_group()


def check_agreement(ranks: Ranks, folder: Path) -> None:
    """What every rank gets when each has its own number."""
    agreed = {
        "maxima": ranks.maxima([float(ranks.rank), float(-ranks.rank), 5.0]),
        "decided": ranks.decided(40.0 + ranks.rank),
    }
    (folder / f"agreed.{ranks.rank}").write_text(json.dumps(agreed), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
